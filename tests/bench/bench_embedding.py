"""citation_grounding and semantic_similarity against the same scores computed the usual way: one encode call for a
sentence and one for a source's windows, again for every pair, nothing reused. Same model, windows and threads.

The usual way takes an hour on all of expertqa and ragtruth_qa, so both run on a part: every eighth expertqa trace with
sources, and of ragtruth_qa every tenth group of answers to one question, whole, as traffic repeats its sources.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # nothing is remembered from another run
sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.backends.embedding.model import Embedder, embedder
from calibrate.backends.embedding.passages import claims
from calibrate.backends.text.citations import attribute_citations, without_marks
from calibrate.backends.text.segments import Part
from calibrate.backends.weights import threads
from calibrate.detectors.citation_grounding import CitationGrounding
from calibrate.detectors.semantic_similarity import SemanticSimilarity
from calibrate.detectors.shared.scoring import by_number, claiming, contexts
from calibrate.types import Source, Trace

DATA = Path(__file__).parents[3] / "shared" / "data"
TARGET = 8.0  # over traffic, where answers share sources
ALONE = 2.0  # traces that share nothing: only windows that cannot matter are saved, half of the texts


@dataclass(frozen=True)
class Timed:
    """Seconds of both ways, and how far their scores are apart at most."""

    ours: float
    usual: float
    apart: float

    @property
    def ratio(self) -> float:
        return self.usual / self.ours


def rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def trace(row: dict[str, Any]) -> Trace:
    sources = tuple(Source(number, text) for number, text in row["sources"].items())
    return Trace(row["trace_id"], row["answer"], sources=sources, context=row.get("context"))


def expertqa() -> list[Trace]:
    return [trace(row) for row in [row for row in rows("expertqa") if row["sources"]][::8]]


def ragtruth() -> list[Trace]:
    held = rows("ragtruth_qa")
    groups = list(dict.fromkeys(row["extra"]["source_group"] for row in held))
    return [trace(row) for row in held if row["extra"]["source_group"] in set(groups[::10])]


def highest(model: Embedder, claim: str, text: str, size: int) -> float | None:
    """The highest cosine of a sentence with a source's windows, from scratch."""
    passages = [text[a:b] for a, b in model.windows(text, sentences_per_window=size)]
    if not passages:
        return None
    network = model._network()
    one = network.encode(claim, normalize_embeddings=True)
    return float(np.max(network.encode(passages, normalize_embeddings=True) @ one))


def usual_grounding(given: Trace, model: Embedder, size: int) -> float | None:
    """The lowest over (sentence, citation)."""
    texts = {source.number: source.text for source in given.sources}
    found: list[float] = []
    for sentence in attribute_citations(given.answer, sources=texts):
        claim = without_marks(given.answer, sentence)
        for number in (number for number in sentence.numbers if number in texts):
            pieces = [claim[piece.start : piece.end] for piece in model.fit(claim, [Part(0, len(claim))])]
            values = (highest(model, piece, texts[number], size) for piece in pieces)
            found += [value for value in values if value is not None]
    return min(found) if found else None


def usual_similarity(given: Trace, model: Embedder, size: int) -> float | None:
    """The mean of the two lowest over sentences of the highest cosine with any source."""
    found: list[float] = []
    for claim in claims(given.answer, model, sources=by_number(given.sources), among=claiming(given)):
        values = [highest(model, claim.text, one.text, size) for one in contexts(given)]
        there = [value for value in values if value is not None]
        found += [max(there)] if there else []
    return float(np.mean(sorted(found)[:2])) if found else None


def timed(detectors: list[Any], given: list[Trace], model: Embedder) -> Timed:
    model.forget()
    start = time.perf_counter()
    ours = [[score.value for score in detector.score(given)] for detector in detectors]
    fast = time.perf_counter() - start
    torch.set_num_threads(threads())
    start = time.perf_counter()
    theirs = [list(usual(detector, given, model)) for detector in detectors]
    slow = time.perf_counter() - start
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
    assert all((one is None) == (other is None) for one, other in pairs)
    apart = max(abs(one - other) for one, other in pairs if one is not None and other is not None)
    assert apart < 1e-4, f"scores differ by {apart}"
    return Timed(fast, slow, apart)


def usual(detector: Any, given: list[Trace], model: Embedder) -> Iterator[float | None]:
    way = usual_grounding if isinstance(detector, CitationGrounding) else usual_similarity
    return (way(one, model, detector.sentences_per_window) for one in given)


def main() -> list[str]:
    """Time every case; the names of those below their target."""
    model = embedder()
    model.encode(["load the model before the clock starts"])
    grounding, similarity = CitationGrounding(), SemanticSimilarity()
    cases = (
        ("citation_grounding on expertqa", [grounding], expertqa(), ALONE),
        ("citation_grounding and semantic_similarity on expertqa and ragtruth_qa",
         [grounding, similarity], expertqa() + ragtruth(), TARGET),
    )  # fmt: skip
    slow = []
    for name, detectors, given, target in cases:
        times = timed(detectors, given, model)
        print(
            f"{name}, {len(given)} traces: {times.ours:.1f} s, the usual way {times.usual:.1f} s: "
            f"{times.ratio:.1f} x faster (target {target:g}); scores differ by at most {times.apart:.1e}"
        )
        if times.ratio < target:
            slow.append(f"{name} (target {target:g})")
    return slow


if __name__ == "__main__":
    if not (DATA / "expertqa.jsonl.gz").is_file():
        raise SystemExit(f"skipped: {DATA} is not here")
    if slow := main():
        raise SystemExit(f"too slow: {'; '.join(slow)}")

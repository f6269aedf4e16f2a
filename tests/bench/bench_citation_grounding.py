"""citation_grounding against the same scores computed the usual way: for every sentence and citation one encode call
for the sentence and one for that source's windows, nothing reused. Same model, windows and threads. Must be 8 or more.

The usual way takes minutes on all of expertqa, so both run on every eighth of its traces with sources.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # nothing is remembered from another run
sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.backends.citations import attribute_citations, without_marks
from calibrate.backends.embedder import Embedder, embedder
from calibrate.backends.text import Part
from calibrate.backends.weights import threads
from calibrate.detectors.citation_grounding import CitationGrounding
from calibrate.types import Source, Trace

DATA = Path(__file__).parents[3] / "shared" / "data" / "expertqa.jsonl.gz"
EVERY = 8


def traces() -> list[Trace]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["sources"]][::EVERY]
    return [
        Trace(r["trace_id"], r["answer"], sources=tuple(Source(n, t) for n, t in r["sources"].items())) for r in rows
    ]


def usual(trace: Trace, model: Embedder, size: int) -> float | None:
    """The lowest over (sentence, citation) of the highest cosine, each pair from scratch."""
    network = model._network()
    texts = {source.number: source.text for source in trace.sources}
    best: list[float] = []
    for sentence in attribute_citations(trace.answer, known=texts):
        claim = without_marks(trace.answer, sentence)
        for number in sentence.numbers:
            for piece in model.fit(claim, [Part(0, len(claim))]) if number in texts else []:
                text = texts[number]
                passages = [text[a:b] for a, b in model.windows(text, sentences_per_window=size)]
                if passages:
                    one = network.encode(claim[piece.start : piece.end], normalize_embeddings=True)
                    others = network.encode(passages, normalize_embeddings=True)
                    best.append(float(np.max(others @ one)))
    return min(best) if best else None


def main() -> dict[str, float]:
    detector, model = CitationGrounding(), embedder()
    given = traces()
    model.encode(["load the model before the clock starts"])
    model.forget()
    start = time.perf_counter()
    ours = [score.value for score in detector.score(given)]
    fast = time.perf_counter() - start
    torch.set_num_threads(threads())
    start = time.perf_counter()
    theirs = [usual(trace, model, detector.sentences_per_window) for trace in given]
    slow = time.perf_counter() - start
    assert [value is None for value in ours] == [value is None for value in theirs]
    apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None)
    assert apart < 1e-4, f"scores differ by {apart}"
    print(
        f"citation_grounding on {len(given)} expertqa traces: {fast:.1f} s, the usual way {slow:.1f} s: "
        f"{slow / fast:.1f} x faster; scores differ by at most {apart:.1e}"
    )
    return {"traces": len(given), "seconds": fast, "usual_seconds": slow, "ratio": slow / fast, "difference": apart}


if __name__ == "__main__":
    if not DATA.is_file():
        raise SystemExit(f"skipped: {DATA} is not here")
    if main()["ratio"] < 8:
        raise SystemExit("less than 8 times as fast")

"""bertscore and selfcheck_bertscore against `bert_score.score`, called once a trace as the recipes do, on the same
model. Must be 10 or more on wikibio_sentences: a sentence against 20 alternatives, for `bertscore` as its sources.

The recipe compares every sentence with every sentence of the other side; it is given our sentences and windows, so that
both do the same work. It takes minutes on everything, so both run on a part. On ragtruth_qa, whose answers are most of
its text and are read once by either, there is less to save: that ratio is printed only.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # nothing is remembered from another run
sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.backends.embedding.model import embedder
from calibrate.backends.embedding.passages import claims, cut
from calibrate.backends.weights import threads
from calibrate.detectors.base import Detector
from calibrate.detectors.bertscore import BertScore
from calibrate.detectors.selfcheck_bertscore import SelfCheckBertScore
from calibrate.engines.run import score_batch
from calibrate.types import Source, Trace
from tests.shared_data import load

LAYERS = 6


def figures(candidates: list[str], references: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Precision and F1 of the pairs; loads the model, as a call of `score` does."""
    from bert_score import score

    precision, _, f1 = score(
        candidates, references, model_type=str(embedder().directory()), num_layers=LAYERS, device="cpu"
    )
    return precision, f1


def usual_bertscore(trace: Trace) -> float:
    said = [claim.text for claim in claims(trace.answer, embedder(), sources=[s.number for s in trace.sources])]
    held = [window.text for window in cut(trace.context_texts, embedder(), sentences_per_window=2)]
    precision, _ = figures([one for one in said for _ in held], held * len(said))
    return float(precision.view(len(said), len(held)).max(dim=1).values.mean())


def usual_selfcheck(trace: Trace) -> float:
    said = [claim.text for claim in claims(trace.answer, embedder())]
    pieces = cut(trace.alternatives, embedder(), sentences_per_window=1)
    _, f1 = figures([one for one in said for _ in pieces], [one.text for one in pieces] * len(said))
    places = [one.place for one in pieces]
    rows = f1.view(len(said), len(pieces))
    best = [rows[:, [i for i, at in enumerate(places) if at == place]].max(dim=1).values for place in set(places)]
    return float(1 - torch.stack(best).mean(dim=0).mean())


def compare(detector: Detector, given: list[Trace], usual: Callable[[Trace], float], every: int) -> float:
    """How many times as fast ours is; the recipe runs on every so-manieth trace and is taken to go on like that."""
    batch = int(getattr(type(detector), "batch", 16))
    embedder().forget()
    start = time.perf_counter()
    scores = [s for i in range(0, len(given), batch) for s in score_batch(detector, given[i : i + batch])]
    fast = (time.perf_counter() - start) / len(given)
    torch.set_num_threads(threads())
    start = time.perf_counter()
    theirs = {i: usual(given[i]) for i in range(0, len(given), every)}
    slow = (time.perf_counter() - start) / len(theirs)
    torch.set_num_threads(1)
    apart = max(abs(value - (scores[i].value or 0.0)) for i, value in theirs.items())
    assert apart < 1e-3, f"{detector.name}: scores differ by {apart}"
    print(
        f"{detector.name}: {1 / fast:.1f} traces/s (n {len(given)}), bert_score {1 / slow:.2f} (n {len(theirs)}): "
        f"{slow / fast:.1f} x; scores differ by at most {apart:.0e}"
    )
    return slow / fast


def main() -> dict[str, float]:
    embedder().encode(["load the model before the clock starts"])
    said = list(load("wikibio_sentences").traces[:96])
    against = [
        replace(one, sources=tuple(Source(str(number), text) for number, text in enumerate(one.alternatives, 1)))
        for one in said
    ]
    ratios = {
        "selfcheck_bertscore": compare(SelfCheckBertScore(), said, usual_selfcheck, every=12),
        "bertscore": compare(BertScore(), against, usual_bertscore, every=12),
    }
    compare(BertScore(), list(load("ragtruth_qa").traces[:60]), usual_bertscore, every=6)
    return ratios


if __name__ == "__main__":
    if min(main().values()) < 10:
        raise SystemExit("less than 10 times as fast")

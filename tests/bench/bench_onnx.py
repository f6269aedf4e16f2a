"""Pairs per CPU-second of one cross-encoder on torch, ONNX Runtime, and ONNX Runtime in 8-bit integers, as ratios in
one run; the three take turns, so that what else the machine does falls on all. ONNX must not be slower than torch, and
int8 at least 1.5 times as fast.

The network has MiniLM-L6's size and RANDOM weights (no trained NLI model is here): the arithmetic is the same, the
verdicts mean nothing, and the differences printed say little of a trained model's.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOUCHSTONE_THREADS"] = "1"
os.environ["TOUCHSTONE_DEVICE"] = "cpu"

from calibrate.backends.embedding.model import embedder
from calibrate.backends.nli.model import Nli
from tests.bench.bench_nli import build

SETTINGS = ("torch", "onnx", "onnx-int8")
ROUNDS = 3
TEXT = "the parcel leaves our warehouse before noon and a battery is covered for two years from its delivery"


def pairs(count: int = 64) -> list[tuple[str, str]]:
    """Pairs of a passage of some 60 words and a sentence of some 15, the same in every run."""
    draw, words = np.random.default_rng(0), np.array(TEXT.split(" "))
    return [
        (" ".join(draw.choice(words, draw.integers(40, 80))), " ".join(draw.choice(words, draw.integers(8, 22))))
        for _ in range(count)
    ]


def main() -> dict[str, float]:
    given = pairs()
    seconds: dict[str, list[float]] = {name: [] for name in SETTINGS}
    models, rows = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TOUCHSTONE_CACHE"] = str(Path(folder) / "cache")
        directory = build(Path(folder) / "model", "MiniLM-L6")
        for name in SETTINGS:
            os.environ["TOUCHSTONE_INFERENCE"] = name
            models[name] = Nli(str(directory))
            rows[name] = models[name].probabilities(given)  # loads, and exports
        for _ in range(ROUNDS):
            for name in SETTINGS:
                models[name].forget()
                began = time.process_time()
                models[name].probabilities(given)
                seconds[name].append(time.process_time() - began)
    rates = {name: len(given) / statistics.median(seconds[name]) for name in SETTINGS}
    print(f"{len(given)} pairs, MiniLM-L6 with RANDOM weights, one thread:")
    for name in SETTINGS:
        off = np.abs(rows[name] - rows["torch"])
        print(
            f"  {name}: {rates[name]:.0f} pairs per CPU-second, {rates[name] / rates['torch']:.2f} x torch; "
            f"probabilities differ by {off.mean():.1e} on average, {off.max():.1e} at most"
        )
    return {name: rates[name] / rates["torch"] for name in SETTINGS}


if __name__ == "__main__":
    if why := embedder().unavailable():
        raise SystemExit(f"skipped: {why}")
    ratios = main()
    if ratios["onnx"] < 1 or ratios["onnx-int8"] < 1.5:
        raise SystemExit("ONNX Runtime is not as much faster than torch as it should be")

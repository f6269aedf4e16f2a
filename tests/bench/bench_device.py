"""Sentences and pairs a second on the processor and on each GPU that torch sees, in full and in half precision, as
ratios to the processor in one run; and how far the scores are apart, which has limits: 1e-4 in full, .005 in half.

The NLI weights are random (no trained model can be had without a hub): the arithmetic is that of MiniLM-L6.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # every device embeds anew

from calibrate.backends.embedding.model import PACKAGED, Embedder, embedder
from calibrate.backends.nli.model import Nli
from calibrate.backends.weights import threads

os.environ.setdefault("TOUCHSTONE_THREADS", str(threads()))  # bench_nli would set 2
from tests.bench.bench_nli import DATA, build, traces

ROUNDS = 3
COPIES = 40  # of the texts on a GPU, which is done with a few hundred before the clock can tell
LIMITS = {"full": 1e-4, "half": 0.005}


@dataclass(frozen=True)
class Measured:
    """Rates in texts and pairs a second, with the scores: cosines of all texts, probabilities of all pairs."""

    sentences: float
    pairs: float
    cosines: np.ndarray
    probabilities: np.ndarray


def rate(count: int, compute: Callable[[], object]) -> float:
    compute()  # kernels are chosen and memory is taken on the first call
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        compute()
        seconds.append(time.perf_counter() - began)
    return count / statistics.median(seconds)


def measure(device: str, precision: str, folder: Path, texts: list[str], pairs: list[tuple[str, str]]) -> Measured:
    os.environ.update(TOUCHSTONE_DEVICE=device, TOUCHSTONE_PRECISION=precision)
    model, judge = Embedder(PACKAGED), Nli(str(folder))
    vectors, rows = model.encode(texts), judge.probabilities(pairs)
    copies = range(1 if device == "cpu" else COPIES)
    all_texts = [f"{text} {copy}" for copy in copies for text in texts]
    all_pairs = [(premise, f"{hypothesis} {copy}") for copy in copies for premise, hypothesis in pairs]

    def embed() -> None:
        model.forget()
        model.encode(all_texts)

    def judge_all() -> None:
        judge.forget()
        judge.probabilities(all_pairs)

    return Measured(rate(len(all_texts), embed), rate(len(all_pairs), judge_all), vectors @ vectors.T, rows)


def main() -> list[str]:
    """Measure every device; the names of those whose scores are further off than their limit."""
    model, given = embedder(), traces()
    windows = [
        source.text[a:b]
        for trace in given[:12]
        for source in trace.sources
        for a, b in model.windows(source.text, sentences_per_window=3)
    ]
    answers = [
        trace.answer[a:b] for trace in given[:12] for a, b in model.windows(trace.answer, sentences_per_window=1)
    ]
    texts = list(dict.fromkeys(windows + answers))
    judged = [(windows[number % len(windows)], answer) for number, answer in enumerate(answers * 3)]
    pairs = list(dict.fromkeys(judged))
    gpus = [name for name, one in (("cuda", torch.cuda), ("mps", torch.backends.mps)) if one.is_available()]
    far = []
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "MiniLM-L6")
        processor = measure("cpu", "full", Path(folder), texts, pairs)
        print(
            f"cpu, {threads()} threads, {len(texts)} sentences, {len(pairs)} pairs: {processor.sentences:.0f} "
            f"sentences/s, {processor.pairs:.0f} pairs/s"
        )
        for name, precision in ((name, precision) for name in gpus for precision in LIMITS):
            here = measure(name, precision, Path(folder), texts, pairs)
            off = max(
                float(np.abs(here.cosines - processor.cosines).max()),
                float(np.abs(here.probabilities - processor.probabilities).max()),
            )
            print(
                f"{name}, {precision} precision: {here.sentences:.0f} sentences/s "
                f"({here.sentences / processor.sentences:.1f} x cpu), {here.pairs:.0f} pairs/s "
                f"({here.pairs / processor.pairs:.1f} x cpu); scores at most {off:.1e} off "
                f"(limit {LIMITS[precision]:g})"
            )
            far += [f"{name}, {precision}"] if off > LIMITS[precision] else []
    if not gpus:
        print(f"no GPU is at hand: torch {torch.__version__} sees neither CUDA nor mps, so nothing is compared")
    return far


if __name__ == "__main__":
    if not DATA.is_file():
        raise SystemExit(f"skipped: {DATA} is not here")
    if why := embedder().unavailable():
        raise SystemExit(f"skipped: {why}")
    if far := main():
        raise SystemExit(f"scores are too far from the processor's: {'; '.join(far)}")

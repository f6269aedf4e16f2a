"""The `nli` detector against the same scores computed the usual way: a transformers pipeline called for every sentence
with every window of the context. Same model, windows and threads. Must be 4 times as fast or more, and make use of at
least 60% of the arithmetic that the machine does in a matrix product (both measured in this run, chunk by chunk, in
processor time: by the clock, what else the machine does falls on one or the other by chance).

No trained NLI model can be had without a model hub, so the weights are random: the arithmetic is the same, the verdicts
mean nothing. Three sizes: MiniLM-L6 (the one that counts), and with --more BERT-like 6 × 768 and DeBERTa-v3-xsmall.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOUCHSTONE_THREADS", "2")

from calibrate.backends.embedding.model import embedder
from calibrate.backends.embedding.passages import claims, cut
from calibrate.backends.inference.batches import BATCH_TOKENS
from calibrate.backends.nli.model import Nli, nli
from calibrate.backends.weights import threads
from calibrate.detectors.nli import NliSupport
from calibrate.detectors.shared.nli import Cutter
from calibrate.detectors.shared.scoring import by_number, contexts
from calibrate.types import Source, Trace

DATA = Path(__file__).parents[3] / "shared" / "data" / "ragtruth_qa.jsonl.gz"
EVERY, CHUNK = 48, 4
SIZES = {"MiniLM-L6": (384, 6, 1536, 12), "6 x 768": (768, 6, 3072, 12), "DeBERTa-v3-xsmall": (384, 12, 1536, 6)}


def traces() -> list[Trace]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        Trace(r["trace_id"], r["answer"], sources=tuple(Source(n, t) for n, t in r["sources"].items()))
        for r in rows[::EVERY]
    ]


def build(folder: Path, size: str) -> Path:
    """A classifier of that size with random weights and the packaged embedding model's tokenizer."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, DebertaV2Config

    torch.manual_seed(1)
    hidden, layers, inner, heads = SIZES[size]
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    settings: dict[str, Any] = {
        "vocab_size": 30522, "hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": inner,
        "num_attention_heads": heads, "max_position_embeddings": 512, "initializer_range": 0.06, "id2label": labels,
        "label2id": {name: place for place, name in labels.items()},
    }  # fmt: skip
    if size.startswith("DeBERTa"):
        relative = {"relative_attention": True, "position_buckets": 256, "pos_att_type": ["p2c", "c2p"],
                    "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False,
                    "type_vocab_size": 0}  # fmt: skip
        config: Any = DebertaV2Config(**settings, **relative)
    else:
        config = BertConfig(**settings)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(embedder().directory()), model_max_length=512).save_pretrained(folder)
    return folder


def flops(size: str, lengths: list[int]) -> float:
    """Multiplications and additions of the linear layers and of attention, for the tokens themselves (no padding).
    Relative attention adds two products of the same size; its positions, projected once a batch, are not counted."""
    hidden, layers, inner, _ = SIZES[size]
    products = 4 if size.startswith("DeBERTa") else 2
    linear = 2 * (4 * hidden * hidden + 2 * hidden * inner)
    return float(sum(layers * (linear * n + products * 2 * n * n * hidden) for n in lengths))


def matmul_rate(seconds: float = 0.5) -> tuple[float, float]:
    """FLOP a second, and a second of one processor, of products of 1024 x 1024 matrices on every thread at once."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    out = [torch.empty(1024, 1024) for _ in range(threads())]
    torch.set_num_threads(1)
    until, start, done = time.perf_counter() + seconds, time.perf_counter(), [0] * threads()
    busy = time.process_time()

    def work(which: int) -> None:
        while time.perf_counter() < until:
            torch.matmul(a, b, out=out[which])
            done[which] += 1

    with ThreadPoolExecutor(threads()) as pool:
        list(pool.map(work, range(threads())))
    total = sum(done) * 2 * 1024**3
    return total / (time.perf_counter() - start), total / (time.process_time() - busy)


def usual(trace: Trace, model: Nli, classify: Any, size: int) -> float:
    """The lowest over sentences of the highest over windows, one call of the pipeline a pair."""
    cutter: Any = Cutter(model)
    windows = cut([one.text for one in contexts(trace)], cutter, sentences_per_window=size)
    best = []
    for claim in claims(trace.answer, cutter, sources=by_number(trace.sources)):
        highest = -2.0
        for window in windows:
            row = {one["label"]: one["score"] for one in classify({"text": window.text, "text_pair": claim.text})}
            highest = max(highest, row["entailment"] - row["contradiction"])
        best.append(highest)
    return min(best)


@dataclass
class Times:
    ours: float = 0.0
    every: float = 0.0
    usual: float = 0.0
    forward: float = 0.0  # the part of `every` in the model
    busy: float = 0.0  # and the processors' time in it
    flops: float = 0.0
    pairs: int = 0
    pairs_ours: int = 0


def watched(model: Nli, times: Times, size: str) -> Any:
    """The model's forward, counting."""
    forward = model.forward

    def count(inputs: Any) -> Any:
        start, busy = time.perf_counter(), time.process_time()
        rows = forward(inputs)
        times.forward += time.perf_counter() - start
        times.busy += time.process_time() - busy
        times.flops += flops(size, [len(one["input_ids"]) for one in inputs])
        times.pairs += len(inputs)
        return rows

    return count


def main(size: str) -> dict[str, float]:
    from transformers import pipeline

    given, times, rates, apart = traces(), Times(), [], 0.0
    with tempfile.TemporaryDirectory() as made:
        folder = str(build(Path(made), size))
        detector = NliSupport(windows="all", model=folder)
        model = nli(folder)
        classify: Any = pipeline("text-classification", model=folder, top_k=None, device="cpu")
        model.probabilities([("load the model", "before the clock starts")])
        model.forward = watched(model, times, size)  # type: ignore[method-assign]
        for start in range(0, len(given), CHUNK):
            some = given[start : start + CHUNK]
            rates.append(matmul_rate())
            model.forget()
            began = time.perf_counter()
            every = [score.value for score in replace(detector, evidence="all").score(some)]
            times.every += time.perf_counter() - began
            rates.append(matmul_rate())
            model.forget()
            kept = replace(times)
            began = time.perf_counter()
            ours = [score.value for score in detector.score(some)]
            times.ours += time.perf_counter() - began
            times.pairs_ours += times.pairs - kept.pairs
            times.forward, times.busy, times.flops, times.pairs = kept.forward, kept.busy, kept.flops, kept.pairs
            torch.set_num_threads(threads())
            began = time.perf_counter()
            theirs = [usual(trace, model, classify, detector.sentences_per_window) for trace in some]
            times.usual += time.perf_counter() - began
            for a, b, c in zip(ours, every, theirs, strict=True):
                assert a is not None
                assert b is not None
                apart = max(apart, abs(a - c), abs(b - c))
    assert apart < 1e-4, f"scores differ by {apart}"
    wall, rate = (sum(some) / len(some) for some in zip(*rates, strict=True))
    share = times.flops / times.busy / rate
    print(
        f"nli on {len(given)} ragtruth_qa traces, {size} with RANDOM weights (no NLI model here), {threads()} threads, "
        f"batches of {BATCH_TOKENS} tokens:\n"
        f"  {times.ours:.1f} s for the scores ({times.pairs_ours} pairs judged), {times.every:.1f} s with evidence=all "
        f"({times.pairs} pairs), the usual way {times.usual:.1f} s: {times.usual / times.ours:.1f} x faster, "
        f"{times.usual / times.every:.1f} x with every pair judged; scores differ by at most {apart:.1e}\n"
        f"  GFLOP in a second of one processor: {times.flops / times.busy / 1e9:.0f} in the model, {rate / 1e9:.0f} in "
        f"matrix products: {share:.0%} of the ceiling; by the clock {times.flops / times.forward / 1e9:.0f} and "
        f"{wall / 1e9:.0f}, {times.pairs / times.forward:.0f} pairs/s"
    )
    return {"ratio": times.usual / times.ours, "ratio_every": times.usual / times.every, "ceiling": share}


if __name__ == "__main__":
    if not DATA.is_file():
        raise SystemExit(f"skipped: {DATA} is not here")
    if why := embedder().unavailable():
        raise SystemExit(f"skipped: {why}")
    result = main("MiniLM-L6")
    if "--more" in sys.argv:
        main("6 x 768")
        main("DeBERTa-v3-xsmall")
    if result["ratio"] < 4:
        raise SystemExit("less than 4 times as fast")
    if result["ceiling"] < 0.6:
        raise SystemExit("less than 60% of the arithmetic ceiling")

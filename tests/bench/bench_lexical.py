"""rouge_l, bleu and token_overlap together against the same values from rouge_score and sacrebleu, pair by pair. One
process, ragtruth_qa and the traces of expertqa that have sources. Must be 30 or more.

With the packages, on every 16th trace: ROUGE-L with stemming for each pair of a sentence and a passage of three
sentences (cut beforehand), and ROUGE-1 (what token_overlap is, on content words) and BLEU, every source a reference,
for the answer and each of its sentences. Printed beside it is the packages' own first example, one call of each for an
answer and its whole context: less work, for values that say less (see `plain`).

The ways take turns over the same traces, three rounds, ours starting each time with nothing remembered; the fastest
round of each counts, in processor seconds.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate import registry
from calibrate.backends.memo import Memo
from calibrate.backends.text import lexical, wordlists
from calibrate.backends.text.segments import sentences, windows, words
from calibrate.detectors import bleu
from calibrate.types import Source, Trace

DATA = Path(__file__).parents[3] / "shared" / "data"
SETS = ("ragtruth_qa", "expertqa")
DETECTORS = ("rouge_l", "bleu", "token_overlap")
ROUNDS = 3
TARGET = 30


def traces(name: str) -> list[Trace]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        Trace(row["trace_id"], row["answer"], sources=tuple(Source(n, text) for n, text in row["sources"].items()))
        for row in rows
        if row["sources"]
    ]


def usual(given: list[Trace], scorer: RougeScorer) -> float:
    began = time.process_time()
    for trace in given:
        context = "\n".join(trace.context_texts)
        scorer.score(context, trace.answer)
        sacrebleu.sentence_bleu(trace.answer, [context])
    return time.process_time() - began


def usual_by_sentence(given: list[Trace]) -> float:
    cut = [([_cut(text, 3) for text in trace.context_texts], _cut(trace.answer, 1)) for trace in given]
    passages_only, overlap = RougeScorer(["rougeL"], use_stemmer=True), RougeScorer(["rouge1"], use_stemmer=True)
    began = time.process_time()
    for trace, (passages, parts) in zip(given, cut, strict=True):
        context = "\n".join(trace.context_texts)
        for text in (trace.answer, *parts):
            overlap.score(context, text)
            sacrebleu.sentence_bleu(text, list(trace.context_texts))
        for part in parts:
            for passage in (passage for found in passages for passage in found):
                passages_only.score(passage, part)
    return time.process_time() - began


def _cut(text: str, size: int) -> list[str]:
    return [text[part.start : part.end] for part in windows(text, sentences_per_window=size)]


def forget() -> None:
    """Empties everything that ours remembers."""
    for memo in (words, sentences, *vars(lexical).values(), *vars(bleu).values()):
        if isinstance(memo, Memo):
            memo.clear()
    lexical.stem.cache_clear()
    wordlists._stop_words.cache_clear()


def ours(given: list[Trace], variant: str) -> float:
    forget()
    detectors = [registry.make(name, {"variant": variant}) for name in DETECTORS]
    began = time.process_time()
    # Batch by batch as a run does, so that each text is still remembered when the next detector asks for it.
    for start in range(0, len(given), 16):
        for detector in detectors:
            scores = list(detector.score(given[start : start + 16]))
            assert not [score.reason for score in scores if score.status == "failed"]
    return time.process_time() - began


def main() -> dict[str, float]:
    scorer = RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    given = [trace for name in SETS for trace in traces(name)]
    usual(given[:2], scorer)
    ours(given[:2], "default")
    rounds = [(usual(given, scorer), ours(given, "default"), ours(given, "plain")) for _ in range(ROUNDS)]
    slow, fast, plain = (min(times) for times in zip(*rounds, strict=True))
    print(
        f"{', '.join(DETECTORS)} on {len(given)} traces: {fast:.2f} s, a call for the whole each {slow:.1f} s: "
        f"{slow / fast:.1f} x faster ({slow / plain:.1f} x with the plain variants)"
    )
    few = given[::16]
    closer, least = usual_by_sentence(few), min(ours(few, "default") for _ in range(ROUNDS))
    print(f"the same for every sentence and passage, on {len(few)} of them: {closer:.1f} s, {closer / least:.0f} x")
    return {"traces": len(given), "ratio": closer / least, "whole": slow / fast, "plain": slow / plain}


if __name__ == "__main__":
    if missing := [name for name in SETS if not (DATA / f"{name}.jsonl.gz").is_file()]:
        raise SystemExit(f"skipped: {', '.join(missing)} not in {DATA}")
    if main()["ratio"] < TARGET:
        raise SystemExit(f"less than {TARGET} times as fast")

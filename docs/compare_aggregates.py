"""Compares ways to make an answer's value of its sentences' values, on ../shared/data, for ADR 0010.

python docs/compare_aggregates.py rouge_l                    # seconds
python docs/compare_aggregates.py semantic_similarity        # half an hour; bertscore takes hours
python docs/compare_aggregates.py nli evidence=all           # P(entailment) - P(contradiction); needs an NLI model
python docs/compare_aggregates.py nli evidence=all variant=entailment   # P(entailment) alone

Prints AUROC per set and way, the difference to the worst sentence with a 95% interval from a bootstrap of whole groups,
and the choice: the highest mean over the sets, of those within TIE the one that looks at the fewest sentences. Then the
same choice with each set left out, and what it gets there.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from results_groups import groups_of  # noqa: E402

from calibrate import registry  # noqa: E402
from calibrate.backends.text.refusals import find_refusal  # noqa: E402
from calibrate.detectors.shared import scoring  # noqa: E402
from calibrate.types import Score, Source, Trace  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SETS = ("attributionbench", "expertqa", "expertqa_claims", "faithdial_audit", "ragtruth_qa")  # with sources and labels
WAYS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "lowest_two": lambda values: float(np.mean(sorted(values)[:2])),
    "lowest tenth": lambda values: float(np.quantile(values, 0.1)),
    "mean": lambda values: float(np.mean(values)),
}  # from the fewest sentences to all
TIE = 0.001
RESAMPLES = 400


def main(detector: str, **params: str) -> None:
    if why := registry.make(detector, params).unavailable():
        raise SystemExit(f"{detector} cannot be compared: {why}")
    scoring.EVIDENCE_LIMIT = sys.maxsize  # the evidence has every sentence's value
    areas = {name: _areas(detector, name, params) for name in SETS}
    print(f"| {' | '.join(['set', *WAYS])} |")
    for name, by_way in areas.items():
        print(f"| {name} | {' | '.join(by_way[way][1] for way in WAYS)} |")
    values = {name: {way: by_way[way][0] for way in WAYS} for name, by_way in areas.items()}
    print(f"| mean | {' | '.join(f'{np.mean([values[name][way] for name in SETS]):.4f}' for way in WAYS)} |")
    print(f"chosen: {_choose([values[name] for name in SETS])}")
    held_out = []
    for name in SETS:
        way = _choose([values[other] for other in SETS if other != name])
        held_out.append(values[name][way])
        print(f"without {name}: {way}, {values[name][way]:.3f} there (min {values[name]['min']:.3f})")
    print(f"mean of the sets left out: {np.mean(held_out):.4f}")


def _choose(areas: Sequence[dict[str, float]]) -> str:
    means = {way: np.mean([by_way[way] for by_way in areas]) for way in WAYS}
    return next(way for way in WAYS if means[way] >= max(means.values()) - TIE)


def _areas(detector: str, name: str, params: dict[str, str]) -> dict[str, tuple[float, str]]:
    """AUROC per way, and as text with n and the difference to min."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    kept = [
        (record, group)
        for record, group in zip(records, groups_of(records), strict=True)
        if record["label"] and (record["sources"] or record["context"]) and not find_refusal(record["answer"])
    ]
    scores = list(registry.make(detector, params).score([_trace(record) for record, _ in kept]))
    judged = [(pair, _values(score)) for pair, score in zip(kept, scores, strict=True) if score.value is not None]
    labels = np.array([record["label"] == "hallucinated" for (record, _), _ in judged])
    suspicion = {way: np.array([-combine(values) for _, values in judged]) for way, combine in WAYS.items()}
    names = np.array([group for (_, group), _ in judged])
    members = [np.flatnonzero(names == group) for group in np.unique(names)]
    rng = np.random.default_rng(1)
    differences: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(RESAMPLES):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        if labels[drawn].any() and not labels[drawn].all():
            least = roc_auc_score(labels[drawn], suspicion["min"][drawn])
            for way in WAYS:
                differences[way].append(roc_auc_score(labels[drawn], suspicion[way][drawn]) - least)
    return {way: _cell(way, labels, suspicion[way], differences[way]) for way in WAYS}


def _cell(way: str, labels: Any, suspicion: Any, differences: Sequence[float]) -> tuple[float, str]:
    area = float(roc_auc_score(labels, suspicion))
    if way == "min":
        return area, f"{area:.3f} (n {len(labels)})"
    low, high = np.quantile(differences, [0.025, 0.975])
    return area, f"{area:.3f} ({low:+.3f} to {high:+.3f})"


def _values(score: Score) -> list[float]:
    return [item.value for item in score.evidence if item.value is not None and item.start is not None]


def _trace(record: dict[str, Any]) -> Trace:
    sources = tuple(Source(number, text) for number, text in (record["sources"] or {}).items())
    return Trace(record["trace_id"], record["answer"], record["question"], record["context"], sources)


if __name__ == "__main__":
    main(sys.argv[1], **dict(text.split("=", 1) for text in sys.argv[2:]))

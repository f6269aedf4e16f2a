"""The part of docs/reference/results.md about `learned`: a head on all detectors, out of fold, beside the best one.

python docs/results_learned.py ragtruth_qa faithdial_audit    # prints it; no BERTScore, so minutes instead of an hour
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from results_points import figure

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.report.numbers import count, signed
from calibrate.report.sentences.tuning.ensembles import names
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence.basis import choose_basis
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.traces.stated_samples import keep_stated
from calibrate.workflow.tuning import learn as step
from db import Store

HEAD = "**Learned from labels**, out of fold (AUROC)."


def part(store: Store, seed: int) -> str:
    """The head on every detector beside the best detector; empty where labels are too few. Labels of a file in which
    not every trace has a verdict count as drawn at random."""
    if choose_basis(store, None).caution is not None:
        rows = count_labels(store, NOBODY, None).rows
        keep_stated(store, "labels", [row.trace_id for row in rows], design="random", now=detect.utc_now())
    try:
        learning = step.learn(store, now=detect.utc_now(), seed=seed)
    except BadInput:
        return ""
    gap = learning.difference
    if gap.value is None or gap.low is None or gap.high is None:
        return ""
    verdict = "gains" if learning.gains else "loses" if gap.high < 0 else "is not shown to gain"
    bases = [f"`{base.name}`" for base in learning.head.bases]
    apart = f"{signed(gap.value)} ({signed(gap.low)} to {signed(gap.high)})"
    table = [
        "| labels | hallucinated | groups | learned | best single, picked in each fold | difference | coverage |",
        "|--:|--:|--:|---|---|---|--:|",
        f"| {count(learning.n)} | {count(learning.positives)} | {count(learning.groups)} | {figure(learning.auroc)} "
        f"| {figure(learning.best_auroc)} | {apart} | {learning.coverage:.0%} |",
    ]
    sentence = (
        f"The head reads {names(bases)} and {verdict} over the best single detector (`{learning.best}`, by all labels)."
    )
    return "\n\n".join([HEAD, "\n".join(table), sentence])


def main(sets: list[str]) -> None:
    from make_results import SEED, open_set

    for name in sets:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            store = open_set(name, Path(folder))
            able = [each for each in registry.names() if _is_cheap(each)]
            queued = detect.queue(store, able, detect.scope_of(labelled=True))
            detect.work(store, run_id=queued.id)
            print(f"## {name}\n\n{part(store, SEED)}\n\n{time.perf_counter() - began:.0f} s", flush=True)
            store.close()


def _is_cheap(name: str) -> bool:
    """Whether a detector can run here within minutes and asks nobody."""
    return (
        not registry.make(name).unavailable()
        and "bertscore" not in name
        and not hasattr(registry.get(name), "requests")
    )


if __name__ == "__main__":
    main(sys.argv[1:])

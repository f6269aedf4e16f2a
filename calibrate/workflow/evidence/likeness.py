"""Whether a sample that its user states to be random looks like the traffic of its window."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrate.stats.sampling.likeness import Unlike, compare_with_traffic
from calibrate.types import Sample
from calibrate.workflow.detection.configurations import configs_by_detector
from db import Store

MOST = 4_000  # traces of the window that a sample is held against
NEARLY_ALL = 0.95  # of a window that has scores: what was run on labelled traces only says nothing of the rest


@dataclass(frozen=True)
class Doubt:
    """What speaks against a random draw: where the scores of one detector differ most."""

    detector: str
    unlike: Unlike


def find_doubt(store: Store, sample: Sample) -> Doubt | None:
    """What speaks against a sample that is stated to be random; None for one that Touchstone drew, and where nothing
    does. Of several detectors, the one that sees the largest difference."""
    if sample.design != "random" or not sample.options.stated:
        return None
    where = replace(sample.filter, label="any")
    traffic = store.traces.count(where)
    able = []
    for name, configs in configs_by_detector(store).items():
        config = configs[-1]
        run = store.coverage.count(config.id, where) + store.coverage.count_refusals(config.id, where)
        if run >= NEARLY_ALL * traffic:
            able.append((name, config))
    doubts = []
    for name, config in able:
        drawn = store.coverage.draw(config.id, where, MOST, rng=np.random.default_rng(sample.seed))
        rows = store.scores.members(config.id, sample.id)
        labelled = [np.nan if row.value is None else row.value for row in rows]
        unlike = compare_with_traffic(labelled, drawn.scores, detectors=len(able))
        doubts += [Doubt(name, unlike)] if unlike else []
    return min(doubts, key=lambda doubt: doubt.unlike.p_value, default=None)

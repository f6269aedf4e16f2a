"""What the labels of both stages measure together: those of all traffic, and those drawn among what is flagged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrate.orientation import flags
from calibrate.stats.choosing.pool import Pool
from calibrate.stats.sampling.dual_frame import combine_frames
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import TraceFilter
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.scores import Row


def sweep_both(
    store: Store, first: Evidence, fresh: Sequence[Row], pool: Pool | None, *, deepest: float, where: TraceFilter
) -> Sweep:
    """The sweep of both stages as one dual-frame sample; that of the first alone where they are not of one window.

    `pool` is the traffic of the first labels, `deepest` the cut that the fresh ones were drawn at, `where` the window
    they come from: one window where both hold the same traces.
    """
    rows = [row for row in fresh if row.gold in ("clean", "hallucinated") and row.value is not None]
    if first.design is None or first.sample is None or first.waiting or pool is None or not rows:
        return first.sweep
    windows = (replace(each, label="any") for each in (first.sample.filter, where))
    if len({store.traces.count(window) for window in windows}) > 1:  # the second reaches to the draw, open-ended
        return first.sweep
    share = float(pool.flag_rate(np.array([deepest]), first.flag_when)[0])
    inside = flags(first.scores, deepest, first.flag_when)
    design = combine_frames(
        first.design, inside, traffic_flagged=share * float(first.design.weights.sum()), fresh=len(rows)
    )
    both = replace(first, rows=(*first.rows, *rows))
    return sweep(both.labels, both.scores, design=design, groups=both.groups, flag_when=first.flag_when)

"""What would be known against a threshold set by hand, at every step of a sweep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.pool import Pool
from calibrate.stats.intervals.binomial_intervals import wilson
from calibrate.stats.sweep.design import Floats, Ints
from calibrate.types import Counted, Interval, OperatingPoint, PointState
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.tuning.point_state import judge_point


def states_along(data: Evidence, *, chance: float | None, moved_from: str | None) -> list[PointState]:
    """The state of each of the evidence's steps, were the threshold moved there by hand from the policy `moved_from`.

    `chance` is that of the policy. What a recheck of the very threshold found is not known here.
    """
    disputed = _count_disputed(data)
    return [
        judge_point(point, chance=chance, disputed=int(count), moved_from=moved_from)
        for point, count in zip(points_along(data), disputed, strict=True)
    ]


def points_along(data: Evidence, pool: Pool | None = None) -> Iterator[OperatingPoint]:
    """The point set by hand at each of the evidence's steps. `pool` is the traffic: there its flags are counted."""
    sweep, bounds = data.steps.sweep, data.steps.bounds
    flagged, flagged_low, flagged_high = sweep.flag_rate, bounds.flag_rate_low, bounds.flag_rate_high
    traffic = 0 if pool is None else len(pool.scores)
    if pool is not None and traffic:
        flagged = pool.flag_rate(sweep.thresholds, sweep.flag_when)
        to_come = wilson(flagged, np.full(len(flagged), float(traffic)))
        flagged_low, flagged_high = to_come.low, to_come.high
    rates = zip(
        _intervals(sweep.precision, bounds.precision_low, bounds.precision_high),
        _intervals(sweep.recall, bounds.recall_low, bounds.recall_high),
        _intervals(sweep.fpr, bounds.fpr_low, bounds.fpr_high),
        _intervals(flagged, flagged_low, flagged_high),
        strict=True,
    )
    counts = zip(sweep.thresholds.tolist(), sweep.tp_count.tolist(), sweep.fp_count.tolist(), strict=True)
    clean = sweep.scored - sweep.scored_positives
    for (threshold, hits, alarms), (precision, recall, fpr, flag_rate) in zip(counts, rates, strict=True):
        yield OperatingPoint(
            detector=data.config.name,
            flag_when=sweep.flag_when,
            threshold=threshold,
            policy=str(Policy("manual", threshold)),
            feasible=True,
            precision=precision,
            recall=recall,
            fpr=fpr,
            flag_rate=flag_rate,
            n=sweep.n,
            positives=sweep.positives,
            true_positives=hits,
            false_positives=alarms,
            false_negatives=sweep.scored_positives - hits,
            true_negatives=clean - alarms,
            coverage=sweep.coverage or 0.0,
            counted=Counted(round((flag_rate.value or 0.0) * traffic), traffic) if traffic else None,
        )


def _intervals(*figure: Floats) -> Iterator[Interval]:
    for value, low, high in zip(*(array.tolist() for array in figure), strict=True):
        yield Interval(*(None if number != number else number for number in (value, low, high)))


def _count_disputed(data: Evidence) -> Ints:
    """How many disputed labels each step flags."""
    scores = [row.value for row in data.undecided if row.gold == "disputed" and row.value is not None]
    values = np.array(scores, dtype=float)
    keys = np.sort(-suspicion(values, data.flag_when))
    return np.asarray(np.searchsorted(keys, -suspicion(data.steps.sweep.thresholds, data.flag_when), side="right"))

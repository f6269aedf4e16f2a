"""How well intervals, the naive choice and the bounded strength keep their word, one replication at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate.simulate.scenarios import TARGET, Floats, Traffic
from calibrate.simulate.trials import Labelled, design_of, draw
from calibrate.stats.choosing.bounded import Bounded, bounded
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.intervals.bootstrap import Order
from calibrate.stats.intervals.ranking import rank_with_intervals
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.sweep import RANKABLE, Sweep, sweep
from calibrate.types import Interval

FIGURES = ("precision", "recall", "fpr", "flag_rate")
AREAS = ("auroc", "average_precision")
RESAMPLES = 500  # of an area's interval: its ends are then known to a tenth of its width


@dataclass(frozen=True)
class Coverage:
    """Shares of replications whose 95% interval, if there was one, held the truth, by figure; mean width of
    precision's."""

    held: Mapping[str, float]
    width: float


@dataclass(frozen=True)
class Misses:
    """Shares of replications that chose a cut whose true precision is below the target."""

    measured: float
    bounded: float


def coverage(
    traffic: Traffic, *, n: int, design: str, replications: int, rng: np.random.Generator, target: float = TARGET
) -> Coverage:
    """The intervals at the oracle's cut, which no label chose, from `n` labels by `design`."""
    cut = traffic.oracle(target) - 1
    threshold = float(traffic.scores[cut])
    sample = draw(traffic, n, design=design, replications=replications, rng=rng)
    held: dict[str, list[bool]] = {name: [] for name in FIGURES}
    flagged = traffic.truth[: cut + 1]
    clean = len(traffic.truth) - traffic.truth.sum()
    truths = {
        "precision": traffic.precision[cut],
        "recall": traffic.recall[cut],
        "fpr": np.count_nonzero(~flagged) / clean,
        "flag_rate": len(flagged) / len(traffic.truth),
    }
    widths = []
    for row in range(replications):
        measured = figures(_make_sweep(traffic, sample, row, design), threshold)
        for name, truth in truths.items():
            _keep(held[name], getattr(measured, name), truth)
        low, high = measured.precision.low, measured.precision.high
        # No flagged label: nothing is known, which is an interval from 0 to 1.
        widths.append(1.0 if low is None or high is None else high - low)
    return Coverage({name: _share_held(each) for name, each in held.items()}, float(np.mean(widths)))


def area_coverage(
    traffic: Traffic, *, n: int, design: str, replications: int, rng: np.random.Generator
) -> dict[str, float]:
    """The same of AUROC and average precision, where either verdict has as many labels as the scoreboard asks for."""
    sample = draw(traffic, n, design=design, replications=replications, rng=rng)
    order = Order.of(-traffic.scores, traffic.truth)
    truth = order.areas(np.ones((1, len(traffic.truth))))
    held: dict[str, list[bool]] = {name: [] for name in AREAS}
    for row in range(replications):
        rows, verdicts = sample.rows[row], sample.verdicts[row]
        if min(verdicts.sum(), n - verdicts.sum()) < RANKABLE:
            continue
        drawn = design_of(traffic, rows, design)
        ranking = rank_with_intervals(
            sweep(verdicts, traffic.scores[rows], design=drawn),
            verdicts,
            traffic.scores[rows],
            rng=rng,
            weights=drawn.weights,
            strata=drawn.strata,
            count=RESAMPLES,
        )
        for name in AREAS:
            _keep(held[name], getattr(ranking, name), float(getattr(truth, name)[0]))
    return {name: _share_held(each) for name, each in held.items()}


def _keep(held: list[bool], interval: Interval, truth: float) -> None:
    if interval.low is not None and interval.high is not None:
        held.append(interval.low <= truth <= interval.high)


def misses(
    traffic: Traffic, *, n: int, design: str, replications: int, rng: np.random.Generator, target: float = TARGET
) -> Misses:
    """How often the cuts chosen on `n` labels, naively and by the bounded strength, are below the target."""
    sample = draw(traffic, n, design=design, replications=replications, rng=rng)
    naive, sure = [], []
    for row in range(replications):
        curve = _make_sweep(traffic, sample, row, design)
        if curve.missing:
            naive.append(False)
            sure.append(False)
            continue
        point = choose(curve, Policy("precision", target))
        naive.append(point.feasible and _is_below(traffic, point.threshold, target))
        walked = bounded(curve, target)
        sure.append(isinstance(walked, Bounded) and _is_below(traffic, walked.threshold, target))
    return Misses(_share_held(naive), _share_held(sure))


def labels_like(widths: Floats, sizes: Floats, width: float) -> float:
    """Between which `sizes` of a random sample its interval is `width` wide, interpolated on logarithms of both."""
    order = np.argsort(widths)
    return float(np.exp(np.interp(np.log(width), np.log(widths[order]), np.log(sizes[order]))))


def _make_sweep(traffic: Traffic, sample: Labelled, row: int, design: str) -> Sweep:
    rows = sample.rows[row]
    return sweep(sample.verdicts[row], traffic.scores[rows], design=design_of(traffic, rows, design))


def _is_below(traffic: Traffic, threshold: float, target: float) -> bool:
    flagged = int(np.searchsorted(-traffic.scores[: traffic.scored], -threshold, side="right"))
    return bool(traffic.precision[flagged - 1] < target)


def _share_held(held: list[bool]) -> float:
    return float(np.mean(held)) if held else float("nan")

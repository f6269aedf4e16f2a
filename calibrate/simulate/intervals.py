"""How well intervals, the naive choice and the bounded strength keep their word, one replication at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrate.simulate.scenarios import TARGET, Floats, Traffic
from calibrate.simulate.trials import Labelled, design_of, draw
from calibrate.stats.bounded import Bounded, bounded
from calibrate.stats.intervals import figures
from calibrate.stats.policies import Policy, choose
from calibrate.stats.sweep import Sweep, sweep


@dataclass(frozen=True)
class Coverage:
    """Shares of replications whose 95% interval, if there was one, held the truth; mean width of precision's."""

    precision: float
    recall: float
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
    held: dict[str, list[bool]] = {"precision": [], "recall": []}
    widths = []
    for row in range(replications):
        known = figures(_sweep(traffic, sample, row, design), threshold)
        for figure, truth in (("precision", traffic.precision[cut]), ("recall", traffic.recall[cut])):
            interval = getattr(known, figure)
            if interval.low is not None and interval.high is not None:
                held[figure].append(interval.low <= truth <= interval.high)
        low, high = known.precision.low, known.precision.high
        # No flagged label: nothing is known, which is an interval from 0 to 1.
        widths.append(1.0 if low is None or high is None else high - low)
    return Coverage(_share(held["precision"]), _share(held["recall"]), float(np.mean(widths)))


def misses(
    traffic: Traffic, *, n: int, design: str, replications: int, rng: np.random.Generator, target: float = TARGET
) -> Misses:
    """How often the cuts chosen on `n` labels, naively and by the bounded strength, are below the target."""
    sample = draw(traffic, n, design=design, replications=replications, rng=rng)
    naive, sure = [], []
    for row in range(replications):
        found = _sweep(traffic, sample, row, design)
        if found.missing:
            naive.append(False)
            sure.append(False)
            continue
        point = choose(found, Policy("precision", target))
        naive.append(point.feasible and _below(traffic, point.threshold, target))
        walked = bounded(found, target)
        sure.append(isinstance(walked, Bounded) and _below(traffic, walked.threshold, target))
    return Misses(_share(naive), _share(sure))


def labels_like(widths: Floats, sizes: Floats, width: float) -> float:
    """Between which `sizes` of a random sample its interval is `width` wide, interpolated on logarithms of both."""
    order = np.argsort(widths)
    return float(np.exp(np.interp(np.log(width), np.log(widths[order]), np.log(sizes[order]))))


def _sweep(traffic: Traffic, sample: Labelled, row: int, design: str) -> Sweep:
    rows = sample.rows[row]
    return sweep(sample.verdicts[row], traffic.scores[rows], design=design_of(traffic, rows, design))


def _below(traffic: Traffic, threshold: float, target: float) -> bool:
    flagged = int(np.searchsorted(-traffic.scores[: traffic.scored], -threshold, side="right"))
    return bool(traffic.precision[flagged - 1] < target)


def _share(held: list[bool]) -> float:
    return float(np.mean(held)) if held else float("nan")

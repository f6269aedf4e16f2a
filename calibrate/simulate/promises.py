"""What people are told before and between certificates, against what happens: chances, triage, many attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.simulate.scenarios import TARGET, Traffic, plateaus_of_many_heights, triaged
from calibrate.simulate.trials import certification
from calibrate.stats.intervals.exact_tests import binomial_p, level

ATTEMPTS, SHORT = 10, 0.695  # attempts on one window, of a precision just short of the target
DRAWN = 180  # test labels of each
SEGMENTS = 3  # of one detector
BINS = 10
FEWEST = 50  # predictions without which a bin says nothing


@dataclass(frozen=True)
class Bin:
    """Predictions that fell into one tenth: their mean, and the share that came true."""

    predictions: int
    predicted: float
    certified: float

    @property
    def gap(self) -> float:
        return abs(self.predicted - self.certified)


def calibrate_chances(
    traffic: Sequence[Traffic], *, replications: int, labels: int, rng: np.random.Generator
) -> tuple[Bin, ...]:
    """Predicted chances of a certificate against certificates, over this traffic and plateaus of many heights."""
    outcomes = [
        certification(each, labels=labels, replications=replications, rng=rng)
        for each in (*traffic, *plateaus_of_many_heights())
    ]
    chance = np.concatenate([outcome.chance for outcome in outcomes])
    certified = np.concatenate([outcome.certified for outcome in outcomes])
    tenth = np.minimum((chance * BINS).astype(np.int64), BINS - 1)
    return tuple(
        Bin(int(here.sum()), float(chance[here].mean()), float(certified[here].mean()))
        for here in (tenth == number for number in range(BINS))
        if here.sum() >= FEWEST
    )


def triage(*, replications: int, labels: int, rng: np.random.Generator) -> tuple[float, float]:
    """Wrong certificates where on-call has looked beforehand: drawn from all that is flagged, and from the rest."""
    rates = []
    for each in triaged():
        flagged = certification(each, labels=labels, replications=replications, rng=rng).flagged
        wrong = (flagged > 0) & (each.precision[np.maximum(flagged, 1) - 1] < TARGET)
        rates.append(float(wrong.mean()))
    return rates[0], rates[1]


def many_attempts(*, replications: int, rng: np.random.Generator) -> tuple[float, float]:
    """Windows in which any of ten attempts at a precision just short of the target certifies it: by one ledger, and
    where each attempt begins a new 5%."""
    hits = rng.binomial(DRAWN, SHORT, size=(replications, ATTEMPTS))
    p = binomial_p(hits, np.full(hits.shape, DRAWN), TARGET)
    levels = np.array([level(attempt) for attempt in range(1, ATTEMPTS + 1)])
    return float((p <= levels).any(-1).mean()), float((p <= level(1)).any(-1).mean())


def any_segment(*, replications: int, rng: np.random.Generator) -> tuple[float, float]:
    """Windows in which any of three segments is certified, where every cut of each is just short of the target: by one
    ledger, and where each segment begins a new 5%. The first cut decides, as a walk ends where a test fails."""
    hits = rng.binomial(DRAWN, SHORT, size=(replications, SEGMENTS))
    p = binomial_p(hits, np.full(hits.shape, DRAWN), TARGET)
    levels = np.array([level(attempt) for attempt in range(1, SEGMENTS + 1)])
    return float((p <= levels).any(-1).mean()), float((p <= level(1)).any(-1).mean())

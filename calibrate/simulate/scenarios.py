"""Traffic whose truth is known: scores, verdicts, strata and sources of every trace.

Each scenario is one large finite population. A replication draws its labels from it with replacement, so every trace it
labels is an independent draw, and the precision and recall of any cut are known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

SIZE = 2**18
TARGET = 0.7
FRESH = 20_000
"""Traces of a window, and of the fresh traffic that stage B is drawn from."""

GROUP = 8  # answers that share their sources, in the clustered scenario
BUSY = 4  # sources that stand for much of the flagged traffic
STRICTEST = 0.0005  # share of traffic that the oracle flags at least: truth at three traces is no target
OCTAVES = 8


@dataclass(frozen=True)
class Traffic:
    """A population, most suspicious score first, unscored (NaN) traces last.

    `stratum`: 0 for the top 1/256 of the ranking that samples are drawn by, to 8 for the lower half. `groups`: traces
    that share sources; None where each stands alone. A labeller misses `misses` of the hallucinated and calls
    `false_calls` of the clean ones hallucinated. `frame`: the rows that stage B
    draws from, ascending; None for all.
    """

    name: str
    kind: str
    scores: Floats
    truth: Bools
    stratum: Ints
    groups: Ints | None = None
    misses: float = 0.0
    false_calls: float = 0.0
    fresh: int = FRESH
    frame: Ints | None = None

    @cached_property
    def precision(self) -> Floats:
        """True precision of flagging the first 1, 2, ... traces."""
        return np.cumsum(self.truth) / np.arange(1, len(self.truth) + 1)

    @cached_property
    def recall(self) -> Floats:
        """True recall, end to end, of flagging the first 1, 2, ... traces."""
        return np.cumsum(self.truth) / max(int(self.truth.sum()), 1)

    @property
    def scored(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.scores)))

    def oracle(self, target: float = TARGET) -> int:
        """How many traces the deepest cut flags whose true precision is the target's; 0 where there is none."""
        first = int(STRICTEST * len(self.scores))
        good = np.flatnonzero(self.precision[first : self.scored] >= target)
        return int(good[-1]) + first + 1 if len(good) else 0

    @cached_property
    def strata(self) -> list[Ints]:
        return [np.flatnonzero(self.stratum == h) for h in range(OCTAVES + 1)]


def binormal(rng: np.random.Generator, prevalence: float, auroc: float, spread: float) -> tuple[Floats, Bools]:
    """Clean scores from N(0, 1), hallucinated ones from N(mu, spread), with mu as the AUROC wants it."""
    truth = rng.random(SIZE) < prevalence
    mu = NormalDist().inv_cdf(auroc) * np.sqrt(1 + spread**2)
    z = rng.standard_normal(SIZE)
    return np.where(truth, mu + spread * z, z), truth


def grid() -> Iterator[Traffic]:
    """Prevalence x AUROC x spread of the hallucinated scores."""
    for spread in (1.0, 1.5, 2.0):
        for prevalence in (0.02, 0.05, 0.10, 0.20):
            for auroc in (0.75, 0.85, 0.95):
                rng = np.random.default_rng([round(spread * 10), round(prevalence * 100), round(auroc * 100)])
                scores, truth = binormal(rng, prevalence, auroc, spread)
                yield _traffic(f"{prevalence:.0%}, AUROC {auroc}, spread {spread}", "grid", scores, truth)


def stress() -> Iterator[Traffic]:
    """Shapes and conditions that a method tuned on the grid would fall over."""
    for maker in (_plateaus, _dips, _two_detectors, _abstentions, _clusters, _busy, _noise):
        yield from maker()


def _plateaus() -> Iterator[Traffic]:
    """Precision that stays just short of the target, or near it, over a wide range of scores."""
    shapes: dict[str, Callable[[Floats], Floats]] = {
        "0.69 for the top 10%": lambda u: np.where(u < 0.1, 0.69, 0.02),
        "0.69 for the top 10%, then falling": lambda u: np.where(u < 0.1, 0.69, 0.69 * np.exp(-20 * (u - 0.1))),
        "0.95 for the top 1%, then 0.66": lambda u: np.where(u < 0.01, 0.95, np.where(u < 0.08, 0.66, 0.02)),
        "0.80 for the top 10%": lambda u: np.where(u < 0.1, 0.80, 0.02),
    }
    for number, (name, shape) in enumerate(shapes.items()):
        rng = np.random.default_rng([101, number])
        rank = (np.arange(SIZE) + 0.5) / SIZE
        normal = -np.sort(-rng.standard_normal(SIZE))
        yield _traffic(f"plateau: {name}", "plateau", normal, rng.random(SIZE) < shape(rank))


def _dips() -> Iterator[Traffic]:
    """The very top is bad: a share of clean traffic gets the most suspicious scores of all."""
    for prevalence, auroc, spread, bad in (
        (0.10, 0.90, 1.5, 0.005),
        (0.10, 0.95, 1.5, 0.01),
        (0.05, 0.90, 2.0, 0.005),
        (0.10, 0.90, 2.0, 0.01),
        (0.20, 0.90, 1.5, 0.02),
    ):
        rng = np.random.default_rng([102, round(prevalence * 100), round(auroc * 100), round(spread * 10)])
        scores, truth = binormal(rng, prevalence, auroc, spread)
        odd = ~truth & (rng.random(SIZE) < bad / (1 - prevalence))
        top = np.quantile(scores, 1 - bad / 2)
        scores = np.where(odd, top * (1 + 0.4 * rng.random(SIZE)), scores)
        yield _traffic(f"dip: top {bad:.1%} clean, {prevalence:.0%}, AUROC {auroc}", "dip", scores, truth)


def _two_detectors() -> Iterator[Traffic]:
    """Samples are drawn by the mean of two detectors that err together; the first one is certified."""
    for correlation in (0.3, 0.8):
        rng = np.random.default_rng([103, round(10 * correlation)])
        scores, truth = binormal(rng, 0.05, 0.85, 1.5)
        second_scores = correlation * scores + np.sqrt(1 - correlation**2) * rng.standard_normal(SIZE) + truth
        key = _standard(scores) + _standard(second_scores)
        yield _traffic(f"two detectors, correlation {correlation}", "two detectors", scores, truth, key=key)


def _abstentions() -> Iterator[Traffic]:
    """The detector cannot score 30% of traffic; samples are drawn by the mean of those detectors that can."""
    rng = np.random.default_rng(104)
    scores, truth = binormal(rng, 0.05, 0.9, 1.5)
    second_scores = 0.5 * scores + rng.standard_normal(SIZE) + truth
    missing = rng.random(SIZE) < 0.3
    key = np.where(missing, _standard(second_scores), (_standard(scores) + _standard(second_scores)) / np.sqrt(2))
    yield _traffic("abstains on 30%", "abstentions", np.where(missing, np.nan, scores), truth, key=key)


def _clusters() -> Iterator[Traffic]:
    """Eight answers share their sources, and their verdicts go together; windows of 500 such groups."""
    rng = np.random.default_rng(105)
    groups = np.repeat(np.arange(SIZE // GROUP), GROUP)
    shared = rng.standard_normal(SIZE // GROUP)[groups]
    threshold = NormalDist().inv_cdf(0.9)
    truth = np.sqrt(0.6) * shared + np.sqrt(0.4) * rng.standard_normal(SIZE) > threshold
    z = np.sqrt(0.5) * rng.standard_normal(SIZE // GROUP)[groups] + np.sqrt(0.5) * rng.standard_normal(SIZE)
    scores = np.where(truth, 1.9 + 1.5 * z, z)
    yield _traffic("answers share sources in eights", "clusters", scores, truth, groups=groups, fresh=4000)


def _busy() -> Iterator[Traffic]:
    """A few busy sources stand for much of what is flagged, and most of that is false alarms."""
    for number, (share, low, rest) in enumerate(((0.2, 0.3, 0.79), (0.3, 0.2, 0.88))):
        rng = np.random.default_rng([107, number])
        rank = (np.arange(SIZE) + 0.5) / SIZE
        busy = rng.random(SIZE) < share
        chance = np.where(rank < 0.1, np.where(busy, low, rest), 0.02)
        groups = np.where(busy, rng.integers(0, BUSY, SIZE), BUSY + np.arange(SIZE))
        name = f"busy sources: {share:.0%} of the flagged at {low}, the rest at {rest}"
        normal = -np.sort(-rng.standard_normal(SIZE))
        yield _traffic(name, "busy sources", normal, rng.random(SIZE) < chance, groups=groups)


def triaged() -> tuple[Traffic, Traffic]:
    """Traffic just short of the target, of which on-call has dismissed half of the false alarms and confirmed a few
    hallucinations beforehand: drawn from as a whole, and drawn from what nobody has labelled."""
    rng = np.random.default_rng(108)
    rank = (np.arange(SIZE) + 0.5) / SIZE
    truth = rng.random(SIZE) < np.where(rank < 0.1, 0.66, 0.02)
    seen = rng.random(SIZE) < np.where(truth, 0.05, 0.5)
    normal = -np.sort(-rng.standard_normal(SIZE))
    whole = _traffic("half of the false alarms dismissed beforehand", "triage", normal, truth)
    return whole, replace(whole, frame=np.flatnonzero(~seen))


def plateaus_of_many_heights() -> Iterator[Traffic]:
    """Flat tops of 3% and 10% of the traffic whose precision is .5 to .9: some far short of the target, some beyond."""
    for height in np.linspace(0.5, 0.9, 17):
        for width in (0.03, 0.1):
            rng = np.random.default_rng([109, round(1000 * height), round(1000 * width)])
            rank = (np.arange(SIZE) + 0.5) / SIZE
            normal = -np.sort(-rng.standard_normal(SIZE))
            name = f"plateau of {height:.3f} to {width:.0%}"
            yield _traffic(name, "plateau", normal, rng.random(SIZE) < np.where(rank < width, height, 0.02))


def _noise() -> Iterator[Traffic]:
    """A labeller who misses 10% of the hallucinations and calls 2% of the clean answers hallucinated."""
    for prevalence in (0.05, 0.2):
        rng = np.random.default_rng([106, round(100 * prevalence)])
        scores, truth = binormal(rng, prevalence, 0.9, 1.5)
        yield _traffic(f"label noise, {prevalence:.0%}", "label noise", scores, truth, misses=0.1, false_calls=0.02)


def _traffic(
    name: str,
    kind: str,
    scores: Floats,
    truth: Bools,
    *,
    key: Floats | None = None,
    groups: Ints | None = None,
    misses: float = 0.0,
    false_calls: float = 0.0,
    fresh: int = FRESH,
) -> Traffic:
    order = np.argsort(-scores, kind="stable")  # NaN sorts last
    ranking = scores if key is None else key
    place = np.empty(len(scores), dtype=np.int64)
    place[np.argsort(-ranking, kind="stable")] = np.arange(len(scores))
    stratum = np.clip(OCTAVES + 1 + np.floor(np.log2((place + 0.5) / len(scores))), 0, OCTAVES).astype(np.int64)
    return Traffic(
        name,
        kind,
        scores[order],
        truth[order],
        stratum[order],
        None if groups is None else groups[order],
        misses,
        false_calls,
        fresh,
    )


def _standard(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / values.std())


def at_threshold(prevalence: float, recall: float, precision: float) -> Traffic:
    """Traffic of which the threshold 0 flags hallucinated answers with exactly this recall and precision (but for half
    a trace): scores are normal quantiles, not draws."""
    from scipy.special import ndtri

    normal = NormalDist()
    hallucinated = round(prevalence * SIZE)
    clean = SIZE - hallucinated
    flagged = recall * hallucinated * (1 - precision) / precision / clean  # of the clean ones
    parts = []
    for n, share, spread in ((hallucinated, recall, 1.5), (clean, flagged, 1.0)):
        grid = ndtri((np.arange(n) + 0.5) / n)
        parts.append(spread * (grid - normal.inv_cdf(1 - share)))
    truth = np.arange(SIZE) < hallucinated
    return _traffic(
        f"{prevalence:.0%}, recall {recall:.2f}, precision {precision:.2f}", "point", np.concatenate(parts), truth
    )

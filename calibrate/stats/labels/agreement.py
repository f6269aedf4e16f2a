"""How far labellers agree beyond chance, and how well that is known.

Everything starts from counts: how many labellers gave each verdict to each trace. References: Krippendorff, Content
Analysis (4th ed., 2019), ch. 12; Gwet, British Journal of Mathematical and Statistical Psychology 61 (2008); Cicchetti
and Feinstein, Journal of Clinical Epidemiology 43 (1990), for agreement on one verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrate.errors import BadInput
from calibrate.stats.intervals.binomial_intervals import wilson
from calibrate.stats.intervals.bootstrap import RESAMPLES, Units
from calibrate.types import Interval, Verdict

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CODES: dict[Verdict | None, int] = {"clean": 0, "hallucinated": 1, "unsure": 2, None: -1}
ENRICHED = "enriched"
"""The design of a sample drawn by its labels, to be labelled a second time. Its figures say nothing of the traffic."""
SHARE = 0.4
"""Of an enriched sample, the share that was first called hallucinated."""


@dataclass(frozen=True)
class Agreement:
    """What several labellers said of the same traces.

    `traces` have a definite verdict (clean or hallucinated) of at least two of the labellers; only they are in the
    figures. `unsure` counts the traces that at least two looked at and at least one could not decide. `hallucinated` is
    the share of the definite verdicts. Labellers disagree on `differ` traces, and agree on `both_hallucinated` and
    `both_clean`.

    `raw`: the chance that two verdicts on a trace are the same. `positive` (`negative`): that a second labeller says
    hallucinated (clean) of what a first calls so. `alpha` and `ac1`: agreement beyond chance, 1 is perfect, 0 is
    chance, each with its own idea of chance. A value is None where it is not defined (all verdicts the same, or none),
    or would rest on a single group of traces.
    """

    labellers: tuple[str, ...]
    traces: int
    unsure: int
    hallucinated: float | None
    differ: int
    both_hallucinated: int
    both_clean: int
    raw: Interval
    positive: Interval
    negative: Interval
    alpha: Interval
    ac1: Interval


def measure_agreement(
    labellers: Sequence[str], verdicts: ArrayLike, *, groups: Sequence[Hashable], rng: np.random.Generator
) -> Agreement:
    """Measure how far labellers agree, with 95% intervals.

    Parameters
    ----------
    labellers : sequence of str
        Their names.
    verdicts : array of int, shape (traces, labellers)
        Coded as in CODES, -1 for none.
    groups : sequence of hashable, length traces
        The sources that a trace shares with others, None for a trace of its own.
    rng : Generator
        Source of the random draws.

    Returns
    -------
    Agreement
        Counts, and figures with 95% intervals.

    Raises
    ------
    BadInput
        For another number of groups than traces.
    """
    codes = np.asarray(verdicts, dtype=np.int64).reshape(-1, len(labellers))
    if len(codes) != len(groups):
        raise BadInput(f"{len(codes)} traces and {len(groups)} groups: give one group per trace, None for none")
    definite = count_verdicts(np.where(codes > 1, -1, codes), 2)
    paired = definite.sum(axis=1) > 1
    counts = definite[paired]
    sources = [group for group, here in zip(groups, paired, strict=True) if here]
    differ = (counts > 0).all(axis=1)
    raw, positive, negative = _measure_shares(counts, sources)
    drawn = _draw_groups(counts, sources, rng)
    return Agreement(
        labellers=tuple(labellers),
        traces=len(counts),
        unsure=int(np.sum(((codes >= 0).sum(axis=1) > 1) & (codes == 2).any(axis=1))),
        hallucinated=float(counts[:, 1].sum() / counts.sum()) if len(counts) else None,
        differ=int(differ.sum()),
        both_hallucinated=int(np.sum(~differ & (counts[:, 1] > 0))),
        both_clean=int(np.sum(~differ & (counts[:, 0] > 0))),
        raw=raw,
        positive=positive,
        negative=negative,
        alpha=_interval_of_draws(alpha, counts, drawn, raw),
        ac1=_interval_of_draws(ac1, counts, drawn, raw),
    )


def count_verdicts(codes: ArrayLike, kinds: int) -> Ints:
    """Count the labellers that gave each verdict.

    Parameters
    ----------
    codes : array of int, shape (traces, labellers)
        0 to kinds - 1, below 0 for a missing verdict.
    kinds : int
        How many verdicts there are.

    Returns
    -------
    array of int, shape (traces, kinds)
        Labellers of each verdict.
    """
    verdicts = np.asarray(codes, dtype=np.int64)
    return np.stack([(verdicts == kind).sum(axis=1) for kind in range(kinds)], axis=1)


def alpha(counts: Ints, weights: Floats | None = None) -> Floats:
    """Krippendorff's alpha for nominal verdicts; NaN where undefined.

    1 - (disagreement within traces) / (disagreement were verdicts dealt out at random). Any number of labellers and of
    missing verdicts; a trace with a single verdict pairs with nothing and is left out.

    Parameters
    ----------
    counts : array of int, shape (traces, kinds)
        Labellers of each verdict.
    weights : array of float, shape (resamples, traces), optional
        What each trace counts; default: 1, one row.

    Returns
    -------
    array of float, shape (resamples,)
        At most 1; 0 is chance.

    References
    ----------
    Krippendorff, Content Analysis, 4th ed. (2018), chapter 12.
    """
    m = counts.sum(axis=1)
    pairable = m > 1
    weights = np.ones((1, len(m))) if weights is None else weights
    w, pairs = weights[:, pairable], counts[pairable].astype(float)
    values = w @ pairs
    n = values.sum(axis=1)
    same = w @ ((pairs * (pairs - 1)).sum(axis=1) / (m[pairable] - 1))
    by_chance = (values * (values - 1)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, expected = 1 - same / n, 1 - by_chance / (n * (n - 1))
        return np.asarray(np.where(expected > 1e-12, 1 - observed / expected, np.nan))


def ac1(counts: Ints, weights: Floats | None = None) -> Floats:
    """Gwet's AC1; NaN where undefined.

    Its chance agreement comes from traces that are hard to decide, and so stays small where one verdict is rare. A
    trace with one verdict counts for how common that is.

    Parameters
    ----------
    counts : array of int, shape (traces, kinds)
        Labellers of each verdict.
    weights : array of float, shape (resamples, traces), optional
        What each trace counts; default: 1, one row.

    Returns
    -------
    array of float, shape (resamples,)
        At most 1; 0 is chance.

    References
    ----------
    Gwet, British Journal of Mathematical and Statistical Psychology 61 (2008).
    """
    m = counts.sum(axis=1)
    weights = np.ones((1, len(m))) if weights is None else weights
    rated, pairable = m > 0, m > 1
    kinds = counts.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs, many = counts[pairable], m[pairable]
        same = (pairs * (pairs - 1)).sum(axis=1) / (many * (many - 1))
        observed = weights[:, pairable] @ same / weights[:, pairable].sum(axis=1)
        share = weights[:, rated] @ (counts[rated] / m[rated, None]) / weights[:, rated].sum(axis=1)[:, None]
        by_chance = (share * (1 - share)).sum(axis=1) / (kinds - 1)
        return np.asarray((observed - by_chance) / (1 - by_chance))


def _measure_shares(counts: Ints, groups: Sequence[Hashable]) -> tuple[Interval, Interval, Interval]:
    """Agreement on any verdict, on hallucinated and on clean."""
    m = counts.sum(axis=1)
    same = counts * (counts - 1) / (m - 1)[:, None]
    raw = _measure_share(same.sum(axis=1) / m, np.ones(len(m)), groups)
    positive, negative = (_specific_agreement(same[:, kind], counts[:, kind], groups) for kind in (1, 0))
    return raw, positive, negative


def _specific_agreement(same: Floats, given: Ints, groups: Sequence[Hashable]) -> Interval:
    """For two labellers, 2a / (2a + b + c), with the Wilson interval of a out of a + b + c carried over."""
    p = same.sum() / given.sum() if given.sum() else 0.0
    # The share z = p / (2 - p) has this ratio's denominator: traces where anybody said so, each counted once.
    figure = _measure_share(same / 2, given - same / 2, groups)
    if figure.value is None or figure.low is None or figure.high is None:
        return Interval(None)
    low, high = (2 * bound / (1 + bound) for bound in (figure.low, figure.high))
    return Interval(float(p), low, high)


def _measure_share(part: Floats, whole: Floats | Ints, groups: Sequence[Hashable]) -> Interval:
    """Sum of `part` over sum of `whole`, Wilson's interval at an effective size: groups of traces err together."""
    counted = np.flatnonzero(np.asarray(whole) > 0)
    if not len(counted):
        return Interval(None)
    p = float(part[counted].sum() / whole[counted].sum())
    members = Units.among([groups[row] for row in counted.tolist()]).of
    off = np.bincount(members, (part - p * whole)[counted])
    spread = float((off**2).sum() / whole[counted].sum() ** 2)
    size = min(p * (1 - p) / spread, len(counted)) if spread > 1e-15 else members.max() + 1
    reach = wilson(np.array([p]), np.array([float(size)]))
    return Interval(p, float(reach.low[0]), float(reach.high[0]))


def _interval_of_draws(
    figure: Callable[[Ints, Floats | None], Floats], counts: Ints, drawn: _Draws, raw: Interval
) -> Interval:
    """The middle 95% of the draws. Where nobody disagreed the figure may be 1. Nothing is known from a single group of
    traces."""
    value = float(figure(counts, None)[0]) if len(counts) else float("nan")
    if np.isnan(value) or drawn.groups < 2:
        return Interval(None)
    low, high = np.nanquantile(figure(drawn.counts, drawn.weights), (0.025, 0.975))
    return Interval(value, min(float(low), value), 1.0 if raw.value == 1.0 else max(float(high), value))


@dataclass(frozen=True)
class _Draws:
    """The distinct ones of `groups` groups of traces, and what part of all there might be each is: shape (draws, their
    traces), in parts of LARGE."""

    counts: Ints
    weights: Floats
    groups: int


LARGE = 1e6
PRIOR = 0.5


def _draw_groups(counts: Ints, groups: Sequence[Hashable], rng: np.random.Generator) -> _Draws:
    """The Bayesian bootstrap of groups of traces (Rubin, Annals of Statistics 9, 1981), with Jeffreys' half a trace of
    each kind that two labellers can make: a few traces without one kind do not say that there is none of it. The
    spread is that of n - 2 groups. Simulated for two labellers, 20 to 200 traces: 95% intervals of alpha cover .935 to
    .976, where the percentile bootstrap covers .88 to .99. Groups that hold the same counts are one kind drawn more
    often: thousands of traces are a handful of kinds."""
    members: dict[int, list[tuple[int, ...]]] = {}
    for group, row in zip(Units.among(groups).of.tolist(), counts.tolist(), strict=True):
        members.setdefault(group, []).append(tuple(row))
    seen = Counter(tuple(sorted(rows)) for rows in members.values())
    if not seen:
        return _Draws(counts, np.zeros((0, 0)), 0)
    prior: dict[tuple[tuple[int, ...], ...], float] = {((2, 0),): PRIOR, ((1, 1),): PRIOR, ((0, 2),): PRIOR}
    # In order, so that the order of the traces changes nothing.
    kinds = {kind: seen[kind] + prior.get(kind, 0.0) for kind in sorted({*seen, *prior})}
    n = len(members)
    parts = rng.dirichlet(np.array(list(kinds.values())) * max(n - 2, 1) / n, size=RESAMPLES)
    return _Draws(
        np.array([row for kind in kinds for row in kind], dtype=np.int64),
        np.repeat(LARGE * parts, [len(kind) for kind in kinds], axis=1),
        n,
    )

"""Whether a precision holds or fell below its target, from labels that come one by one, with a look after each.

Two wealths are kept, each a bet against one hypothesis. Against "the precision is at least the target" the bet is that
it is some q below it: a label multiplies the wealth by q / target when it is hallucinated and by (1 - q) / (1 - target)
when it is clean, which earns nothing on average where the hypothesis is true. The bets on all q, spread by a beta
distribution cut off at the target, are one non-negative supermartingale, so the chance that it ever reaches 1 / alpha
is at most alpha (Ville 1939), however often one looks and whenever one stops. The bet against "at most the target" is
its mirror image. In closed form, by incomplete beta functions: Robbins (1970); as confidence sequences: Howard, Ramdas,
McAuliffe and Sekhon (2021), Waudby-Smith and Ramdas (2024).

The spread is Beta(6 target, 6 - 6 target), cut off: of those worth one to ten labels and centred at the target it was
the quickest at the precisions of `python -m calibrate simulate --drift` taken together. A flat one takes a quarter more
labels where the precision is .6 and the target .7. No spread changes what Ville promises.

Labels are drawn at random from flagged traces, of which some share their sources and may err together. "Holds" is
therefore tested twice: on every label, which is about the traces as they are, and on the first label of every source,
which counts a busy source once. The smaller of the two e-values decides; it is one against "at most the target" by
either count. "Fell below" is about the traces alone: what a busy source does to them is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.stats.monitoring.confidence_sequence import confidence_sequence
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.types import Interval

ALPHA = 0.05
STRENGTH = 6.0  # labels that the prior of the bets is worth
FAR = 2000  # labels beyond which no forecast is made
TRIALS = 400  # of a forecast

Decision = Literal["holds", "fell below", "go on"]


@dataclass(frozen=True)
class Path:
    """What was known after each label, arrays of one length: natural logs of the e-values against "at most the target",
    on every label (`rows`), on the first of each source (`sources`) and the smaller of the two (`holds`); against "at
    least" on every label (`fell`); the measured precision of the definite labels and its confidence sequence (NaN
    before the first definite label)."""

    rows: Floats
    sources: Floats
    fell: Floats
    estimate: Floats
    low: Floats
    high: Floats

    @property
    def holds(self) -> Floats:
        return np.minimum(self.rows, self.sources)


@dataclass(frozen=True)
class Standing:
    """What is known after `labels` labels, `hallucinated` of them (unsure ones are neither).

    `sources` of them are the first of their source, `hallucinated_sources` of these hallucinated. An e-value of
    1 / alpha decides: `log_needed` is its log; `log_holds` is the smaller of `log_rows` and `log_sources`. `estimate`
    is the precision with an interval that holds at all times at once, at the confidence 1 - alpha. `more`: labels that
    a decision is likely to take, None where 2,000 would hardly do.
    """

    decision: Decision
    labels: int
    hallucinated: int
    sources: int
    hallucinated_sources: int
    log_rows: float
    log_sources: float
    log_fell: float
    log_needed: float
    estimate: Interval
    more: int | None

    @property
    def log_holds(self) -> float:
        return min(self.log_rows, self.log_sources)


def log_fell(k: ArrayLike, n: ArrayLike, target: float) -> Floats:
    """The log e-value against "the precision is at least the target" after k hallucinated of n labels.

    Parameters
    ----------
    k : array of int
        Hallucinated labels.
    n : array of int
        Labels.
    target : float
        The precision to meet, between 0 and 1.

    Returns
    -------
    array of float
        Natural logarithms.
    """
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    a, b = STRENGTH * target, STRENGTH * (1 - target)
    wealth = _log_below(a + k, b + n - k, target) - _log_below(a, b, target)
    return np.asarray(wealth - k * np.log(target) - (n - k) * np.log1p(-target))


def log_holds(k: ArrayLike, n: ArrayLike, target: float) -> Floats:
    """The log e-value against "the precision is at most the target" after k hallucinated of n labels.

    Parameters
    ----------
    k : array of int
        Hallucinated labels.
    n : array of int
        Labels.
    target : float
        The precision to meet, between 0 and 1.

    Returns
    -------
    array of float
        Natural logarithms.
    """
    return log_fell(np.asarray(n) - np.asarray(k), n, 1 - target)


def follow_labels(
    labels: Sequence[bool | None],
    target: float,
    *,
    repeats: Sequence[bool] | None = None,
    alpha: float = ALPHA,
) -> Path:
    """The path of labels in the order they came: hallucinated, clean, or None for unsure.

    An unsure one counts against each decision: as hallucinated where it might say that the precision fell, as clean
    where that it holds.

    Parameters
    ----------
    labels : sequence of bool or None
        In the order they came; None for unsure.
    target : float
        The precision to meet, between 0 and 1.
    repeats : sequence of bool, optional
        Which labels are of traces that share their sources with an earlier one; default: none.
    alpha : float
        The error of the confidence sequence, between 0 and 1.

    Returns
    -------
    Path
        E-values and bounds after every label.

    Raises
    ------
    BadInput
        For a target or alpha outside 0 to 1.
    """
    _check(target, alpha)
    hallucinated = np.array([label is True for label in labels], dtype=bool)
    first = _mark_first(repeats, len(labels))
    hits = np.cumsum(hallucinated, dtype=np.int64)
    doubts = np.cumsum([label is None for label in labels], dtype=np.int64)
    n = np.arange(1, len(labels) + 1)
    definite = n - doubts
    low, high = confidence_sequence(hits, definite, alpha=alpha)
    with np.errstate(invalid="ignore"):
        estimate = np.where(definite > 0, hits / np.maximum(definite, 1), np.nan)
    none = definite == 0
    return Path(
        rows=log_holds(hits, n, target),
        sources=log_holds(np.cumsum(hallucinated & first), np.cumsum(first), target),
        fell=log_fell(hits + doubts, n, target),
        estimate=estimate,
        low=np.where(none, np.nan, low),
        high=np.where(none, np.nan, high),
    )


def first_decision(path: Path, *, alpha: float = ALPHA) -> tuple[Decision, int]:
    """The first decision on a path and the labels that it took; "go on" and all of them where there is none.

    Parameters
    ----------
    path : Path
        E-values after every label.
    alpha : float
        The error of each decision, between 0 and 1.

    Returns
    -------
    tuple of str and int
        The decision, and the labels it took.
    """
    bar = -np.log(alpha)
    crossed: Bools = np.maximum(path.holds, path.fell) >= bar
    if not crossed.any():
        return "go on", len(crossed)
    first = int(np.argmax(crossed))
    return ("holds" if path.holds[first] >= path.fell[first] else "fell below"), first + 1


def standing(
    labels: Sequence[bool | None],
    target: float,
    *,
    repeats: Sequence[bool] | None = None,
    alpha: float = ALPHA,
    rng: np.random.Generator,
) -> Standing:
    """Where a recheck stands; what comes after the label that decided is left out.

    Parameters
    ----------
    labels : sequence of bool or None
        In the order they came; None for unsure.
    target : float
        The precision to meet, between 0 and 1.
    repeats : sequence of bool, optional
        Which labels are of traces that share their sources with an earlier one; default: none.
    alpha : float
        The error of each decision, between 0 and 1.
    rng : Generator
        Draws the forecast.

    Returns
    -------
    Standing
        The decision and what is known.

    Raises
    ------
    BadInput
        For a target or alpha outside 0 to 1.
    """
    path = follow_labels(labels, target, repeats=repeats, alpha=alpha)
    decision, n = first_decision(path, alpha=alpha)
    first = _mark_first(repeats, len(labels))[:n]
    hits = np.array([label is True for label in labels[:n]], dtype=bool)
    tally = _Tally(
        rows=(int(hits.sum()), n),
        sources=(int((hits & first).sum()), int(first.sum())),
        doubts=sum(label is None for label in labels[:n]),
    )
    definite = n - tally.doubts
    bounds = (float(path.low[n - 1]), float(path.high[n - 1])) if definite else (None, None)
    return Standing(
        decision=decision,
        labels=n,
        hallucinated=tally.rows[0],
        sources=tally.sources[1],
        hallucinated_sources=tally.sources[0],
        log_rows=float(path.rows[n - 1]) if n else 0.0,
        log_sources=float(path.sources[n - 1]) if n else 0.0,
        log_fell=float(path.fell[n - 1]) if n else 0.0,
        log_needed=float(-np.log(alpha)),
        estimate=Interval(tally.rows[0] / definite if definite else None, *bounds),
        more=0 if decision != "go on" else _forecast_labels(tally, target, alpha, rng),
    )


def _log_below(a: ArrayLike, b: ArrayLike, t: float) -> Floats:
    """log of the integral of x^(a - 1) (1 - x)^(b - 1) from 0 to t. Where the ratio of beta functions has no room in a
    float, the first term of its series: a little too small, and so a bet that pays a little less."""
    from scipy.special import betainc, betaln

    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(divide="ignore"):
        exact = betaln(a, b) + np.log(betainc(a, b, t))
    return np.asarray(np.maximum(exact, a * np.log(t) + b * np.log1p(-t) - np.log(a)))


@dataclass(frozen=True)
class _Tally:
    """Hallucinated of all labels, of all and of the first of each source; `doubts` are unsure."""

    rows: tuple[int, int]
    sources: tuple[int, int]
    doubts: int


def _forecast_labels(tally: _Tally, target: float, alpha: float, rng: np.random.Generator) -> int | None:
    """The median of the labels still to come in paths drawn from what is known: a precision from the beta distribution
    of the definite labels, after half a label each way, and labels by it; as large a share of them as so far is the
    first of its source. None where more than half do not end."""
    hits, n = tally.rows
    definite = n - tally.doubts
    looks = np.unique(np.geomspace(1, FAR, 80).round()).astype(np.int64)
    precision = rng.beta(hits + 0.5, definite - hits + 0.5, size=TRIALS)
    hit = np.cumsum(rng.binomial(np.diff(looks, prepend=0), precision[:, None]), axis=1)
    holds = log_holds(hits + hit, n + looks, target)
    source_hits, sources = tally.sources
    if sources < n:
        new = np.round(looks * sources / n).astype(np.int64)
        share = rng.beta(source_hits + 0.5, sources - source_hits + 0.5, size=TRIALS)
        hit_sources = np.cumsum(rng.binomial(np.diff(new, prepend=0), share[:, None]), axis=1)
        holds = np.minimum(holds, log_holds(source_hits + hit_sources, sources + new, target))
    over = np.maximum(holds, log_fell(hits + tally.doubts + hit, n + looks, target)) >= -np.log(alpha)
    took = np.where(over.any(1), looks[over.argmax(1)], FAR + 1)
    middle = int(np.median(took))
    return middle if middle <= FAR else None


def _mark_first(repeats: Sequence[bool] | None, n: int) -> Bools:
    """Which labels are the first of their source."""
    return np.ones(n, dtype=bool) if repeats is None else ~np.asarray(repeats, dtype=bool)


def _check(target: float, alpha: float) -> None:
    if not 0 < target < 1:
        raise BadInput(f"a target of {target:g} cannot be tested: give a precision between 0 and 1, like 0.7")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha {alpha:g} is no chance of an error: give one between 0 and 1, like 0.05")

"""Stage A of a certificate: plan on the first labels which cuts to test, and on how many labels.

What a plan promises, and why it does, is written in `stage_b.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.stats.certification.certificates import (
    Evidence,
    NotCertifiable,
    Plan,
    Shortfall,
    ShortfallReason,
    Step,
)
from calibrate.stats.certification.forecast import Forecast, forecast, labels_needed, plan_and_tell
from calibrate.stats.certification.ladder import Ladder, build_ladder, local_weights
from calibrate.stats.certification.readings import draw_rings
from calibrate.stats.certification.walks import AT_LEAST, Walk, chance_within_reach
from calibrate.stats.intervals.exact_tests import ALPHA, level
from calibrate.stats.sweep.design import Bools, Floats, check_weights
from calibrate.types import FlagWhen, Interval

STAGE_A_SHARE = 0.4
"""Of the labels one can afford, the part to spend on stage A."""

DRAWS = 800  # half of them choose the plan, the others tell its chance
UNLIMITED = 10**9  # traces, where the question is whether traffic is what lacks
SLIM = 0.2  # below this chance nothing is planned; where no cut is as likely to reach the target, it is out of reach


def plan_certificate(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    pool_scores: ArrayLike,
    target: float,
    *,
    budget: int,
    rng: np.random.Generator,
    fresh: int | None = None,
    flag_when: FlagWhen = "above",
    alpha: float = ALPHA,
    attempt: int = 1,
    sources: float = 1.0,
) -> Plan | NotCertifiable:
    """Plan stage B from the labels so far.

    Parameters
    ----------
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    labels : array of bool, shape (labels,)
        True for hallucinated.
    weights : array of float, shape (labels,), or None
        1 / the chance that each trace was drawn; None for all alike.
    pool_scores : array of float, shape (traces,)
        The detector on the window's traffic, labelled or not.
    target : float
        The precision to meet, between 0 and 1.
    budget : int
        Labels that stage B may cost, at least 20.
    rng : Generator
        Source of the random draws.
    fresh : int, optional
        Traces that stage B may draw from; default: as many as the pool holds.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    alpha : float
        The error over all attempts, above 0 and below 0.5.
    attempt : int
        Which attempt at this certificate it is, from 1.
    sources : float
        Test labels that are likely to be the first of their sources, as a share of all; above 0 and up to 1.

    Returns
    -------
    Plan or NotCertifiable
        The cuts to test and how many traces to label, or why that has a chance below SLIM and what would do.

    Raises
    ------
    BadInput
        For labels of one kind or too few, infinite scores, and a target, error, budget or attempt out of range.
    """
    _check_target(target, alpha, budget, attempt)
    evidence = read_evidence(scores, labels, weights, pool_scores, flag_when=flag_when)
    fresh = evidence.ladder.total if fresh is None else fresh
    curves = draw_curves(evidence, rng)
    now = level(attempt, alpha)
    walk, prospect = plan_and_tell(
        evidence.ladder, curves, labels=budget, fresh=fresh, target=target, level=now, rng=rng, sources=sources
    )
    chance = float(prospect.chance[0])
    if walk.labels[0] and chance >= SLIM:
        return _make_plan(evidence, curves, walk, prospect, target=target, alpha=alpha, attempt=attempt)
    return explain_failure(
        evidence,
        curves,
        (),
        target=target,
        alpha=alpha,
        attempt=attempt,
        fresh=fresh,
        rng=rng,
        sources=sources,
        chance=chance if walk.labels[0] else None,
    )


def read_evidence(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    pool_scores: ArrayLike,
    *,
    flag_when: FlagWhen = "above",
) -> Evidence:
    """Bring labels and traffic into the form that the fit sees.

    Parameters
    ----------
    scores : array of float, shape (labels,)
        Scores in the detector's units, NaN where it has none.
    labels : array of bool, shape (labels,)
        True for hallucinated.
    weights : array of float, shape (labels,), or None
        1 / the chance that each trace was drawn; None for all alike.
    pool_scores : array of float, shape (traces,)
        The detector on the window's traffic, labelled or not.
    flag_when : {"above", "below"}
        The detector's suspicious side.

    Returns
    -------
    Evidence
        The ladder of cuts, and every scored label on it.

    Raises
    ------
    BadInput
        For labels of one kind or too few, and infinite scores.
    """
    ladder = build_ladder(np.asarray(pool_scores, dtype=np.float64), flag_when=flag_when)
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != values.shape:
        raise BadInput(f"{y.size} labels and {values.size} scores: give one score per label, NaN for none")
    scored = ~np.isnan(values)
    if np.isinf(values).any():
        raise BadInput(f"{np.isinf(values).sum()} scores are infinite: a detector that cannot score must abstain")
    _check_labels(y[scored])
    w = check_weights(weights, None, len(y))
    w = np.ones(len(y)) if w is None else w
    local = local_weights(ladder.positions(values[scored]), w[scored])
    return Evidence(ladder, ladder.describe(values[scored]), y[scored].astype(np.float64), local, flag_when)


def explain_failure(
    evidence: Evidence,
    curves: Floats,
    steps: tuple[Step, ...],
    *,
    target: float,
    alpha: float,
    attempt: int,
    fresh: int,
    rng: np.random.Generator,
    sources: float = 1.0,
    chance: float | None = None,
) -> NotCertifiable:
    """Say why there is no certificate, and how many labels another attempt would take.

    Parameters
    ----------
    evidence : Evidence
        All labels so far, as the fit sees them.
    curves : array of float, shape (1, draws, cuts)
        P(hallucinated) in every ring (`draw_curves`).
    steps : tuple of Step
        The cuts that stage B tested; empty before it.
    target : float
        The precision to meet, between 0 and 1.
    alpha : float
        The error over all attempts.
    attempt : int
        Which attempt comes next, from 1.
    fresh : int
        Traces that it may draw from.
    rng : Generator
        Source of the random draws.
    sources : float
        Test labels that are likely to be the first of their sources, as a share of all.
    chance : float, optional
        What the labels asked for had, where that was too little.

    Returns
    -------
    NotCertifiable
        With a plan for the next attempt where some number of labels is likely to do.
    """
    ladder = evidence.ladder
    within = float(chance_within_reach(ladder, curves, target)[0])

    def find_least(traces: int) -> Walk:
        now = level(attempt, alpha)
        return labels_needed(ladder, curves, fresh=traces, target=target, level=now, rng=rng, sources=sources)

    if within < SLIM:
        why = Shortfall(ShortfallReason.OUT_OF_REACH, best=_best_precision(ladder, curves))
        return NotCertifiable(why, None, None, target, alpha, steps)
    walk = find_least(fresh)
    if not walk.labels[0]:
        enough = int(find_least(UNLIMITED).labels[0]) or None
        reason = ShortfallReason.NO_TRAFFIC if enough else ShortfallReason.TOO_MANY
        why = Shortfall(reason, fresh=fresh, labels=enough, chance=chance)
        return NotCertifiable(why, None, None, target, alpha, steps)
    _, told_by = np.array_split(curves, 2, axis=1)
    prospect = forecast(ladder, told_by, walk, target=target, level=level(attempt, alpha), rng=rng, sources=sources)
    plan = _make_plan(evidence, curves, walk, prospect, target=target, alpha=alpha, attempt=attempt)
    why = Shortfall(ShortfallReason.MORE_LABELS, chance=chance)
    return NotCertifiable(why, int(walk.labels[0]), plan, target, alpha, steps)


def _make_plan(
    evidence: Evidence, curves: Floats, walk: Walk, prospect: Forecast, *, target: float, alpha: float, attempt: int
) -> Plan:
    ladder = evidence.ladder
    cuts = slice(int(walk.start[0]), int(walk.deepest[0]) + 1)
    precision = (np.cumsum(curves[0] * ladder.rings, axis=-1) / ladder.shares)[:, cuts]
    low, high = np.quantile(precision, (0.05, 0.95), axis=0)
    expected = zip(precision.mean(0).tolist(), low.tolist(), high.tolist(), strict=True)
    return Plan(
        target=target,
        cuts=tuple(ladder.thresholds[cuts].tolist()),
        shares=tuple(ladder.shares[cuts].tolist()),
        precision=tuple(expected),
        labels=int(walk.labels[0]),
        chance=float(prospect.chance[0]),
        alpha=alpha,
        level=level(attempt, alpha),
        attempt=attempt,
        flag_when=evidence.flag_when,
        recall=float(prospect.recall[0]),
        chance_unsure=float(prospect.chance_unsure[0]),
        evidence=evidence,
    )


def draw_curves(evidence: Evidence, rng: np.random.Generator) -> Floats:
    """Draw what the labels leave possible.

    Parameters
    ----------
    evidence : Evidence
        All labels so far, as the fit sees them.
    rng : Generator
        Source of the random draws.

    Returns
    -------
    array of float, shape (1, draws, cuts)
        P(hallucinated) in every ring of the ladder, 0 to 1.
    """
    return draw_rings(
        evidence.ladder, evidence.features[None], evidence.labels[None], evidence.weights[None], draws=DRAWS, rng=rng
    )


def _best_precision(ladder: Ladder, curves: Floats) -> Interval:
    share = np.cumsum(ladder.rings)
    enough = share * ladder.total >= AT_LEAST
    enough[-1] = True
    best = (np.cumsum(curves[0] * ladder.rings, axis=-1) / share)[:, enough].max(-1)
    return Interval(float(best.mean()), float(np.quantile(best, 0.05)), float(np.quantile(best, 0.95)))


def _check_target(target: float, alpha: float, budget: int, attempt: int) -> None:
    if not 0 < target < 1:
        raise BadInput(f"a precision of {target:g} cannot be certified: the target must lie between 0 and 1, like 0.7")
    if not 0 < alpha < 0.5:
        raise BadInput(f"an error of {alpha:g} is none to accept: give one above 0 and below 0.5, like 0.05")
    if budget < AT_LEAST:
        raise BadInput(f"{budget} labels cannot certify anything: allow at least {AT_LEAST}")
    if attempt < 1:
        raise BadInput(f"attempt {attempt}: the first attempt is 1")


def _check_labels(y: Bools) -> None:
    if len(y) < AT_LEAST:
        raise BadInput(f"{len(y)} scored labels are too few to plan on: label at least {AT_LEAST} traces first")
    if not y.any() or y.all():
        kind = "hallucinated" if y.all() else "clean"
        raise BadInput(f"all {len(y)} scored labels are {kind}: label until there are both kinds")

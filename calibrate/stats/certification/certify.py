"""Certified thresholds, in two stages: plan on the first labels, prove on labels drawn afterwards.

Stage A: `candidates` turns the first labels and the unlabelled scores of the window into a plan: cuts, strict to
loose, and how many fresh traces to label of those that the deepest cut flags. Stage B: `certify` tests the cuts in
that order on exactly these labels. The plan does not depend on them, and the walk stops at the first cut that fails,
so the chance that it certifies any cut whose precision is below the target is at most `level` (exact binomial tests
in fixed order: Maurer, Hothorn and Lehmacher 1995). Over repeated attempts the levels sum to `alpha`.

What is certified is the precision among the traffic that the fresh traces were drawn from, by the labels given.

References
----------
Angelopoulos, Bates, Candès, Jordan and Lei, Learn then Test, arXiv:2110.01052 (2021): a risk controlled at a chosen
parameter by tests of each, in a fixed sequence here. Maurer, Hothorn and Lehmacher (1995): tests in a fixed sequence.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.stats.certification.certificates import (
    Certified,
    Evidence,
    NotCertifiable,
    Plan,
    Shortfall,
    ShortfallReason,
    Step,
)
from calibrate.stats.certification.planning import (
    AT_LEAST,
    Ladder,
    Walk,
    best_walk,
    build_ladder,
    chance_within_reach,
    draw_rings,
    labels_needed,
    local_weights,
)
from calibrate.stats.intervals.exact_tests import ALPHA, binomial_p, level, lower_bound, walk_down
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.stats.sweep.design import Bools, Floats, Ints, check_weights
from calibrate.types import FlagWhen, Interval

STAGE_A_SHARE = 0.4
"""Of the labels one can afford, the part to spend on stage A."""

DRAWS = 400
SLIM = 0.2  # below this chance that any cut reaches the target, it is called out of reach


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
        Traces of new traffic to draw from; default: as many as the pool holds.
    flag_when : {"above", "below"}
        The detector's suspicious side.
    alpha : float
        The error over all attempts, above 0 and below 0.5.
    attempt : int
        Which attempt at this certificate it is, from 1.

    Returns
    -------
    Plan or NotCertifiable
        The cuts to test and how many traces to label, or why no number of labels is likely to do.

    Raises
    ------
    BadInput
        For labels of one kind or too few, infinite scores, and a target, error, budget or attempt out of range.
    """
    _check_target(target, alpha, budget, attempt)
    rungs = build_ladder(np.asarray(pool_scores, dtype=np.float64), flag_when=flag_when)
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != values.shape:
        raise BadInput(f"{y.size} labels and {values.size} scores: give one score per label, NaN for none")
    scored = ~np.isnan(values)
    if np.isinf(values).any():
        raise BadInput(f"{np.isinf(values).sum()} scores are infinite: a detector that cannot score must abstain")
    _check_labels(y[scored])
    w = check_weights(weights, None, len(y))
    w = np.ones(len(y)) if w is None else w
    local = local_weights(rungs.positions(values[scored]), w[scored])
    evidence = Evidence(rungs, rungs.describe(values[scored]), y[scored].astype(np.float64), local, flag_when)
    fresh = rungs.total if fresh is None else fresh
    curves = _curves(evidence, rng)
    walk = best_walk(rungs, curves, labels=budget, fresh=fresh, target=target, level=level(attempt, alpha), rng=rng)
    if walk.labels[0] and walk.chance[0] > 0:
        return _plan(evidence, curves, walk, target=target, alpha=alpha, attempt=attempt)
    return _out_of_reach(evidence, curves, (), target=target, alpha=alpha, attempt=attempt, fresh=fresh, rng=rng)


def certify(
    plan: Plan,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    rng: np.random.Generator,
    groups: Sequence[Hashable] | None = None,
    fresh: int | None = None,
) -> Certified | NotCertifiable:
    """Walk the plan's cuts on the labels of stage B.

    These are all the labels of the fresh traces that the plan drew. With `groups` only the first label of a group
    counts: answers from the same sources err together, and a binomial test would take them for independent evidence.

    Parameters
    ----------
    plan : Plan
        What stage A planned.
    scores : array of float, shape (labels,)
        Scores of stage B's labels, in the order drawn.
    labels : array of bool, shape (labels,)
        True for hallucinated.
    rng : Generator
        Draws the forecast of what another attempt would take.
    groups : sequence of hashable, optional
        The sources a trace shares with others: only the first label of a group counts.
    fresh : int, optional
        Traces of new traffic for another attempt; default: as many as the pool holds.

    Returns
    -------
    Certified or NotCertifiable
        The loosest cut that passed, or why none did and what would help.

    Raises
    ------
    BadInput
        For a label that the plan's deepest cut does not flag.
    """
    y, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != values.shape:
        raise BadInput(f"{y.size} labels and {values.size} scores: give one score per label")
    outside = ~flags(values, plan.deepest, plan.flag_when)
    if outside.any():
        raise BadInput(
            f"{np.count_nonzero(outside)} of the {len(y)} labels are not flagged at {plan.deepest:.4g}: stage B is "
            "drawn from what the plan's deepest cut flags; leave other labels out"
        )
    if groups is not None:
        first = first_of_each(groups, len(y))
        y, values = y[first], values[first]
    flagged = np.column_stack([flags(values, cut, plan.flag_when) for cut in plan.cuts])
    m, k = flagged.sum(0), (flagged & y[:, None]).sum(0)
    p = binomial_p(k, m, plan.target)
    last = int(walk_down(p[None], np.ones((1, len(p)), dtype=bool), plan.level)[0])
    steps = _steps(plan, m, k, p, last)
    if last >= 0:
        on = steps[last]
        return Certified(
            cut=on.cut,
            m=on.labels,
            k=on.hallucinated,
            p_value=on.p_value,
            alpha=plan.alpha,
            level=plan.level,
            bound=on.bound,
            target=plan.target,
            share=plan.shares[last],
            walk=steps,
        )
    return _what_it_takes(plan, values, y, steps, fresh=fresh, rng=rng)


def _what_it_takes(
    plan: Plan, scores: Floats, labels: Bools, steps: tuple[Step, ...], *, fresh: int | None, rng: np.random.Generator
) -> NotCertifiable:
    """Not certified: what all labels so far, those of stage B among them, say about another attempt."""
    before = plan.evidence
    if before is None:
        return NotCertifiable(Shortfall(ShortfallReason.FAILED), None, None, plan.target, plan.alpha, steps)
    rungs = before.ladder
    # Stage B was drawn uniformly, so its labels weigh alike.
    evidence = Evidence(
        rungs,
        np.concatenate([before.features, rungs.describe(scores)]),
        np.append(before.labels, labels.astype(np.float64)),
        np.append(before.weights, np.ones(len(labels))),
        before.flag_when,
    )
    return _out_of_reach(
        evidence,
        _curves(evidence, rng),
        steps,
        target=plan.target,
        alpha=plan.alpha,
        attempt=plan.attempt + 1,
        fresh=rungs.total if fresh is None else fresh,
        rng=rng,
    )


def _out_of_reach(
    evidence: Evidence,
    curves: Floats,
    steps: tuple[Step, ...],
    *,
    target: float,
    alpha: float,
    attempt: int,
    fresh: int,
    rng: np.random.Generator,
) -> NotCertifiable:
    """Why there is no certificate, and how many labels the next attempt would take, if any number would do."""
    rungs = evidence.ladder
    likely = float(chance_within_reach(rungs, curves, target)[0])
    n, now = 0, level(attempt, alpha)
    if likely >= SLIM:
        walk = labels_needed(rungs, curves, fresh=fresh, target=target, level=now, rng=rng)
        n = int(walk.labels[0])
    if not n:
        why = Shortfall(ShortfallReason.TOO_MANY, fresh=fresh)
        if likely < SLIM:
            why = Shortfall(ShortfallReason.OUT_OF_REACH, best=_best_precision(rungs, curves))
        return NotCertifiable(why, None, None, target, alpha, steps)
    plan = _plan(evidence, curves, walk, target=target, alpha=alpha, attempt=attempt)
    return NotCertifiable(Shortfall(ShortfallReason.MORE_LABELS), n, plan, target, alpha, steps)


def _plan(evidence: Evidence, curves: Floats, walk: Walk, *, target: float, alpha: float, attempt: int) -> Plan:
    rungs = evidence.ladder
    cuts = slice(int(walk.start[0]), int(walk.deepest[0]) + 1)
    precision = (np.cumsum(curves[0] * rungs.rings, axis=-1) / rungs.shares)[:, cuts]
    low, high = np.quantile(precision, (0.05, 0.95), axis=0)
    expected = zip(precision.mean(0).tolist(), low.tolist(), high.tolist(), strict=True)
    return Plan(
        target=target,
        cuts=tuple(rungs.thresholds[cuts].tolist()),
        shares=tuple(rungs.shares[cuts].tolist()),
        precision=tuple(expected),
        labels=int(walk.labels[0]),
        chance=float(walk.chance[0]),
        alpha=alpha,
        level=level(attempt, alpha),
        attempt=attempt,
        flag_when=evidence.flag_when,
        evidence=evidence,
    )


def _curves(evidence: Evidence, rng: np.random.Generator) -> Floats:
    return draw_rings(
        evidence.ladder, evidence.features[None], evidence.labels[None], evidence.weights[None], draws=DRAWS, rng=rng
    )


def _steps(plan: Plan, m: Ints, k: Ints, p: Floats, last: int) -> tuple[Step, ...]:
    bounds = lower_bound(k, m, plan.level)
    return tuple(
        Step(
            cut=cut,
            labels=int(m[i]),
            hallucinated=int(k[i]),
            p_value=float(p[i]),
            bound=float(bounds[i]),
            outcome="passed" if i <= last else "failed" if i == last + 1 else "not tested",
        )
        for i, cut in enumerate(plan.cuts)
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

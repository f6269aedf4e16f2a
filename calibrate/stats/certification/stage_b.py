"""Stage B of a certificate: prove a threshold on labels drawn after the plan was made.

Stage A (`plan_certificate` in `stage_a.py`) turns the first labels and the unlabelled scores of the window into a plan:
cuts, strict to loose, and how many traces to label of those that the deepest cut flags. Stage B (`certify`) tests
the cuts in that order on exactly these labels. The plan does not depend on them, and the walk stops at the first cut
that fails, so the chance that it certifies any cut whose precision is below the target is at most `level` (exact
binomial tests in fixed order: Maurer, Hothorn and Lehmacher 1995). Over repeated attempts the levels sum to `alpha`.

What is certified is the precision among the traffic that the traces were drawn from, by the labels given. Each cut is
tested twice, and both tests must pass (an intersection-union test: Berger 1982), so neither needs a correction. The
rows, all that were drawn, are exact for that traffic, as each of its traces was equally likely. The sources, one label
each, guard against few sources that stand for much of it: answers from the same sources err together.

References
----------
Angelopoulos, Bates, Candès, Jordan and Lei, Learn then Test, arXiv:2110.01052 (2021): a risk controlled at a chosen
parameter by tests of each, in a fixed sequence here. Maurer, Hothorn and Lehmacher (1995): tests in a fixed sequence.
Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 24 (1982): intersection-union tests.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

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
from calibrate.stats.certification.stage_a import draw_curves, explain_failure
from calibrate.stats.intervals.exact_tests import binomial_p, lower_bound, walk_down
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.stats.sweep.design import Bools, Floats, Ints


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

    These are all the labels of the traces that the plan drew. With `groups` each cut is tested twice, by all labels and
    by the first label of each group, and passes where both do.

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
        The sources a trace shares with others, None for a trace of its own.
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
    flagged = np.column_stack([flags(values, cut, plan.flag_when) for cut in plan.cuts])
    first = np.zeros(len(y), dtype=bool)
    first[first_of_each(groups, len(y)) if groups is not None else np.arange(len(y))] = True
    rows, sources = _count(flagged, y), _count(flagged & first[:, None], y)
    p = np.maximum(
        binomial_p(rows.hits, rows.labels, plan.target), binomial_p(sources.hits, sources.labels, plan.target)
    )
    last = int(walk_down(p[None], np.ones((1, len(p)), dtype=bool), plan.level)[0])
    steps = _make_steps(plan, rows, sources, p, last)
    if last >= 0:
        step = steps[last]
        return Certified(
            cut=step.cut,
            m=step.labels,
            k=step.hallucinated,
            p_value=step.p_value,
            alpha=plan.alpha,
            level=plan.level,
            bound=step.bound,
            target=plan.target,
            share=plan.shares[last],
            walk=steps,
        )
    return _forecast_next(plan, values, y, steps, fresh=fresh, rng=rng)


def _forecast_next(
    plan: Plan, scores: Floats, labels: Bools, steps: tuple[Step, ...], *, fresh: int | None, rng: np.random.Generator
) -> NotCertifiable:
    """Say what another attempt would take, by all labels so far, those of stage B included."""
    before = plan.evidence
    if before is None:
        return NotCertifiable(Shortfall(ShortfallReason.FAILED), None, None, plan.target, plan.alpha, steps)
    ladder = before.ladder
    # Stage B was drawn uniformly, so its labels weigh alike.
    evidence = Evidence(
        ladder,
        np.concatenate([before.features, ladder.describe(scores)]),
        np.append(before.labels, labels.astype(np.float64)),
        np.append(before.weights, np.ones(len(labels))),
        before.flag_when,
    )
    return explain_failure(
        evidence,
        draw_curves(evidence, rng),
        steps,
        target=plan.target,
        alpha=plan.alpha,
        attempt=plan.attempt + 1,
        fresh=ladder.total if fresh is None else fresh,
        rng=rng,
    )


@dataclass(frozen=True)
class _Counts:
    """Labels flagged at every cut, and those of them that are hallucinated."""

    labels: Ints
    hits: Ints


def _count(flagged: Bools, y: Bools) -> _Counts:
    return _Counts(flagged.sum(0), (flagged & y[:, None]).sum(0))


def _make_steps(plan: Plan, rows: _Counts, sources: _Counts, p: Floats, last: int) -> tuple[Step, ...]:
    bounds = np.minimum(
        lower_bound(rows.hits, rows.labels, plan.level), lower_bound(sources.hits, sources.labels, plan.level)
    )
    return tuple(
        Step(
            cut=cut,
            labels=int(rows.labels[i]),
            hallucinated=int(rows.hits[i]),
            p_value=float(p[i]),
            bound=float(bounds[i]),
            outcome="passed" if i <= last else "failed" if i == last + 1 else "not tested",
            sources=int(sources.labels[i]),
            first_hallucinated=int(sources.hits[i]),
        )
        for i, cut in enumerate(plan.cuts)
    )

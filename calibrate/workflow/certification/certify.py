"""Certify a threshold in two stages: plan, draw, label, test. Work may stop after any step and resume later.

`plan` fixes, on the first labels, which cuts will be tested and on how many traces. `draw` draws these test traces
uniformly from what the deepest cut flags of the window, apart from the traces whose labels made the plan. People label
them. `finish` tests once. What keeps the promise of 5%:

- A plan is never rewritten. One that is not drawn yet costs nothing: a newer plan takes its place.
- An attempt counts from its draw, whatever becomes of it. Attempts at one target on the same traffic share one 5%
  (`ledger`), whatever their detector, settings and samples.
- The draw does not ask who labelled a trace before: triage by other people leaves over what they did not look at, which
differs from the rest. A drawn trace that has a verdict keeps it; as the draw is uniform, verdicts are drawn so, too.
- Every trace drawn is labelled before the test, skipped ones too: anyone who may stop early stops when the result looks
good.
  `unsure` is a verdict; unsure and disputed labels count as not hallucinated, which can only cost a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.certification.certificates import Plan
from calibrate.stats.certification.stage_b import certify
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.choosing.pool import count_flags
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import OperatingPoint, PointState, Sample
from calibrate.workflow.certification import attempts, ledger, segment_point
from calibrate.workflow.certification.attempts import Attempt
from calibrate.workflow.certification.both_stages import sweep_both
from calibrate.workflow.certification.planning import (
    collect_labels,
    count_testable,
    hallucinated_rows,
    load_pool_scores,
    score_values,
)
from calibrate.workflow.evidence import traffic
from calibrate.workflow.sampling import sample as samples
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.point_state import Counted, judge_point
from db import Store
from db.scores import Row


def available(store: Store, attempt: Attempt) -> int:
    """How many traces the plan's deepest cut flags now, apart from those that made the plan: what `draw` can draw."""
    return samples.flagged_pool(store, attempts.cut_of(store, attempt), attempt.terms.where, fresh=False)


def least(plan: Plan) -> int:
    """Labels below which the test cannot pass even if all of them are hallucinated: target^m <= level."""
    return math.ceil(math.log(plan.level) / math.log(plan.target))


def draw(store: Store, attempt: Attempt, *, fewer: bool = False, now: datetime) -> Attempt:
    """Draw the test traces that the plan asks for. A second call returns the same draw.

    If there are too few, it raises BadInput with their number; with `fewer` it draws those there are. The test
    is then as valid and less likely to pass.
    """
    stored = attempts.attempt_of(store.certifications.get(attempt.id))
    if stored.fresh_sample_id is not None:
        return stored
    if attempts.siblings(store, attempt)[0].id != attempt.id:
        raise BadInput("there is a newer plan on these labels: draw by that one")
    if not attempt.terms.samples:
        raise BadInput(
            "this plan was made on every label there was, so no trace is left that had no part in it: name the samples "
            f"to plan on (`{attempts.command(attempt)} --sample NAME`)"
        )
    fixed, terms = attempt.plan, attempt.terms
    if (now_is := ledger.ledger_of(store, attempt).attempt) > fixed.attempt:
        raise BadInput(
            f"another attempt at a precision of {fixed.target:g} was drawn on this traffic since the plan was made, so "
            f"this one is attempt {now_is} and not {fixed.attempt}, with a smaller error: plan anew (nothing is spent)"
        )
    name = f"{attempt.detector}-test-{fixed.attempt}"
    drawn = store.samples.get(name)
    if drawn is not None and not _is_drawn_by(store, attempt, drawn):
        name = f"{name}-{attempt.id}"  # an attempt of the same number, on other first labels
        drawn = store.samples.get(name)
    if drawn is None:
        n = available(store, attempt)
        _check_enough(attempt, fixed, n, fewer=fewer)
        drawn = samples.draw(
            store,
            name,
            size=min(fixed.labels, n),
            design="fresh-flagged",
            where=terms.where,
            seed=terms.seed,
            now=now,
            cut=attempts.cut_of(store, attempt),
        )
    return attempts.attempt_of(store.certifications.set_fresh_sample(attempt.id, drawn.id))


def _is_drawn_by(store: Store, attempt: Attempt, drawn: Sample) -> bool:
    """Check whether this plan drew the sample: in a draw that was interrupted, or for somebody else just now."""
    cut, terms = drawn.options.cut, attempt.terms
    same_cut = cut is not None and (cut.config_id, cut.threshold) == (attempt.config_id, attempt.plan.deepest)
    same_draw = (drawn.seed, replace(drawn.filter, unpurged_at=None)) == (terms.seed, terms.where)
    others = (each for each in attempts.attempts_of(store, attempt.detector) if each.id != attempt.id)
    return same_cut and same_draw and all(each.fresh_sample_id != drawn.id for each in others)


def finish(store: Store, attempt: Attempt, *, now: datetime) -> Attempt:
    """Test the plan on the labels of its test traces. A second call returns the stored outcome.

    Raises BadInput, with the number of traces without a label, until all of them have one.
    """
    stored = attempts.attempt_of(store.certifications.get(attempt.id))
    if stored.outcome is not None:
        return stored
    rows, terms = attempts.fresh_rows(store, attempt), attempt.terms
    _check_labelled(rows)
    earlier = [each for each in attempts.siblings(store, attempt) if each.id < attempt.id and each.outcome is not None]
    data = attempts.first_labels(store, attempt)
    pool = load_pool_scores(store, store.scores.get_config(attempt.config_id), terms.where)
    groups = [row.group for row in rows]
    # Two plans drawn in the same instant: the later draw has the later number.
    spent = ledger.ledger_of(store, attempt)
    drawn_so_far = ledger.next_attempt(store, attempt.plan.target, terms.where).earlier
    labels = collect_labels(store, data, earlier, pool).evidence(pool, data.flag_when)
    result = certify(
        replace(attempt.plan, evidence=labels, level=min(attempt.plan.level, spent.level), attempt=drawn_so_far),
        score_values(rows),
        hallucinated_rows(rows),
        groups=groups,
        fresh=count_testable(store, data, terms, [attempt, *earlier], pool),
        rng=np.random.default_rng(terms.seed),
    )
    drawn = attempts.fresh_sample(store, attempt)
    outcome = attempts.outcome_of_test(
        result,
        sample=drawn.name if drawn else None,
        unsure=sum(row.gold not in ("clean", "hallucinated") for row in rows),
        repeats=len(rows) - len(first_of_each(groups, len(rows))),
    )
    return attempts.attempt_of(store.certifications.finish(attempt.id, asdict(outcome), now=now))


def point_of(store: Store, attempt: Attempt) -> OperatingPoint:
    """The certified operating point. Guarantee and precision are from the test labels; recall and false-positive rate
    from those of both stages, where these are of one window; flags are counted where the traffic is scored.

    Raises BadInput where nothing is certified.
    """
    outcome = attempt.outcome
    if outcome is None or outcome.guarantee is None or outcome.cut is None:
        raise BadInput(f"nothing is certified for {attempt.detector}: there is no point to save")
    guarantee = outcome.guarantee
    first = attempts.first_labels(store, attempt)
    rows, pool = attempts.fresh_rows(store, attempt), traffic.counted_traffic(store, first)
    both = sweep_both(store, first, rows, pool, deepest=attempt.plan.deepest, where=attempt.terms.where)
    point = choose(both, Policy("manual", outcome.cut), detector=attempt.detector)
    point = point if pool is None else count_flags(point, pool)
    swept = sweep(
        hallucinated_rows(rows),
        score_values(rows),
        groups=[row.group for row in rows],
        flag_when=attempt.plan.flag_when,
    )
    precision = figures(swept, outcome.cut).precision
    policy = str(Policy("precision", guarantee.target))
    return replace(point, policy=policy, precision=precision, guarantee=guarantee, why=None)


def save(store: Store, attempt: Attempt, *, reason: str = "", by: str, now: datetime) -> OperatingPoint:
    """Save the certified point with the labels of both stages. The next release can then take it. One of a segment is
    saved as the segment's threshold, beside those of the rest.

    Raises BadInput where labels have changed so that the certificate no longer holds, without a `reason`.
    """
    point, data = point_of(store, attempt), attempts.first_labels(store, attempt)
    if attempt.terms.part is not None:
        state = state_of(store, attempt)
        segment_point.save(store, attempt, attempt.terms.part, point, state=state, reason=reason, by=by, now=now)
        return point
    fresh = [row for row in attempts.fresh_rows(store, attempt) if row.gold in ("clean", "hallucinated")]
    every, state = replace(data, rows=(*data.rows, *fresh)), state_of(store, attempt)
    operating_points.save_point(store, every, point, state=state, reason=reason, by=by, now=now)
    return point


def state_of(store: Store, attempt: Attempt) -> PointState:
    """Whether the certified point may go out. Raises BadInput where nothing is certified."""
    point = point_of(store, attempt)
    change = attempts.overturned(store, attempt.detector, point.guarantee) if point.guarantee else None
    return judge_point(point, overturned=Counted(change.guarantee.labels, change.hallucinated) if change else None)


def _check_enough(attempt: Attempt, fixed: Plan, n: int, *, fewer: bool) -> None:
    few, name = least(fixed), attempt.detector
    if n >= fixed.labels or (fewer and n >= few):
        return
    if n < few:
        raise BadInput(
            f"the plan asks for {fixed.labels} flagged traces to test on, and {n} are there: score what came in since "
            f"(`{registry.how_to_score(name)}`), or wait for traffic; fewer than {few} certify nothing, even "
            "if all of them are hallucinated"
        )
    raise BadInput(
        f"the plan asks for {fixed.labels} flagged traces to test on, and {n} are there: score what came in since "
        f"(`{registry.how_to_score(name)}`), or wait for traffic; or draw these {n} "
        f"(`{attempts.command(attempt)} --fewer`): less likely to certify, and as valid"
    )


def _check_labelled(rows: Sequence[Row]) -> None:
    if not rows:
        raise BadInput("no test traces are drawn yet: draw them first")
    if left := sum(row.gold is None for row in rows):
        raise BadInput(
            f"{left} of the {len(rows)} test traces have no label yet: label all of them (say unsure where you cannot "
            "tell). A test that may be done early is done when it looks good, and then proves nothing"
        )

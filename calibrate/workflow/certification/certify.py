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
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.certification.certificates import Evidence, NotCertifiable, Plan
from calibrate.stats.certification.ladder import build_ladder, local_weights
from calibrate.stats.certification.stage_a import STAGE_A_SHARE, plan_certificate
from calibrate.stats.certification.stage_b import certify
from calibrate.stats.certification.walks import AT_LEAST
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sampling.designs import Cut
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import FlagWhen, OperatingPoint, PointState, Sample, TraceFilter
from calibrate.workflow.certification import attempts, ledger
from calibrate.workflow.certification.attempts import Attempt, Terms
from calibrate.workflow.evidence import evidence, traffic
from calibrate.workflow.evidence.basis import must_describe_traffic
from calibrate.workflow.sampling import sample as samples
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.point_state import Counted, judge_point
from db import Store
from db.scores import Config, Row

TARGET = 0.7


def usual_budget(labels: int) -> int:
    """The usual number of labels for stage B after this many in stage A."""
    return max(AT_LEAST, round(labels * (1 - STAGE_A_SHARE) / STAGE_A_SHARE))


def plan(
    store: Store,
    data: evidence.Evidence,
    *,
    target: float = TARGET,
    budget: int | None = None,
    seed: int | None = None,
    by: str,
    now: datetime,
) -> Attempt | NotCertifiable:
    """Plan and store the next attempt on these labels and on the test labels of earlier attempts.

    `budget`: test labels it may cost, default `usual_budget`, or what the attempt before said it would take. Where no
    plan is likely to certify anything, nothing is kept. Raises BadInput while an attempt on these labels is under way,
    and for labels or scores that cannot be planned on.
    """
    spent = _find_spent_attempts(store, data)
    previous = spent[0].outcome if spent else None
    where = replace(data.sample.filter if data.sample else TraceFilter(), until=None, label="any")
    terms = Terms(
        samples=attempts.first_names(data.sample),
        where=where,
        budget=budget or (previous and previous.needed) or usual_budget(len(data.rows)),
        seed=secrets.randbits(31) if seed is None else seed,
    )
    pool = _load_pool_scores(store, data.config, where)
    labels = _collect_labels(store, data, spent, pool)
    result = plan_certificate(
        labels.scores,
        labels.hallucinated,
        labels.weights,
        pool,
        target,
        budget=terms.budget,
        rng=np.random.default_rng(terms.seed),
        fresh=_count_testable(store, data, terms, spent, pool),
        flag_when=data.flag_when,
        attempt=ledger.next_attempt(store, target, where).attempt,
    )
    if isinstance(result, NotCertifiable):
        return result
    row = store.certifications.start(
        data.config.name,
        config_id=data.config.id,
        sample_id=data.sample.id or None if data.sample else None,
        plan=attempts.plan_to_json(result, terms),
        by=by,
        now=now,
    )
    return attempts.attempt_of(row)


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
            f"to plan on (`certify {attempt.detector} --sample NAME`)"
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
        _check_enough(attempt.detector, fixed, n, fewer=fewer)
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
    same_draw = (drawn.seed, drawn.filter) == (terms.seed, terms.where)
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
    pool = _load_pool_scores(store, store.scores.get_config(attempt.config_id), terms.where)
    groups = [row.group for row in rows]
    # Two plans drawn in the same instant: the later draw has the later number.
    spent = ledger.ledger_of(store, attempt)
    drawn_so_far = ledger.next_attempt(store, attempt.plan.target, terms.where).earlier
    labels = _collect_labels(store, data, earlier, pool).evidence(pool, data.flag_when)
    result = certify(
        replace(attempt.plan, evidence=labels, level=min(attempt.plan.level, spent.level), attempt=drawn_so_far),
        _score_values(rows),
        _hallucinated_rows(rows),
        groups=groups,
        fresh=_count_testable(store, data, terms, [attempt, *earlier], pool),
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
    """The certified operating point. Guarantee and precision are from the test labels; recall, false-positive and flag
    rate are what the first labels measure at its cut; flags are counted where the traffic is scored. Raises BadInput
    where nothing is certified."""
    outcome = attempt.outcome
    if outcome is None or outcome.guarantee is None or outcome.cut is None:
        raise BadInput(f"nothing is certified for {attempt.detector}: there is no point to save")
    guarantee = outcome.guarantee
    first = attempts.first_labels(store, attempt)
    pool = traffic.counted_traffic(store, first)
    point = operating_points.choose_point(first, Policy("manual", outcome.cut), pool=pool)
    rows = attempts.fresh_rows(store, attempt)
    swept = sweep(
        _hallucinated_rows(rows),
        _score_values(rows),
        groups=[row.group for row in rows],
        flag_when=attempt.plan.flag_when,
    )
    precision = figures(swept, outcome.cut).precision
    policy = str(Policy("precision", guarantee.target))
    return replace(point, policy=policy, precision=precision, guarantee=guarantee, why=None)


def save(store: Store, attempt: Attempt, *, reason: str = "", by: str, now: datetime) -> OperatingPoint:
    """Save the certified point with the labels of both stages. The next release can then take it.

    Raises BadInput where labels have changed so that the certificate no longer holds, without a `reason`.
    """
    point, data = point_of(store, attempt), attempts.first_labels(store, attempt)
    fresh = [row for row in attempts.fresh_rows(store, attempt) if row.gold in ("clean", "hallucinated")]
    every, state = replace(data, rows=(*data.rows, *fresh)), state_of(store, attempt)
    operating_points.save_point(store, every, point, state=state, reason=reason, by=by, now=now)
    return point


def state_of(store: Store, attempt: Attempt) -> PointState:
    """Whether the certified point may go out. Raises BadInput where nothing is certified."""
    point = point_of(store, attempt)
    change = attempts.overturned(store, attempt.detector, point.guarantee) if point.guarantee else None
    return judge_point(point, overturned=Counted(change.guarantee.labels, change.hallucinated) if change else None)


@dataclass(frozen=True)
class _Labels:
    """Scored labels and their weights in the fit."""

    scores: Floats
    hallucinated: Bools
    weights: Floats

    def evidence(self, pool: Floats, flag_when: FlagWhen) -> Evidence:
        rungs = build_ladder(pool, flag_when=flag_when)
        return Evidence(
            rungs, rungs.describe(self.scores), self.hallucinated.astype(np.float64), self.weights, flag_when
        )


def _collect_labels(store: Store, data: evidence.Evidence, spent: Sequence[Attempt], pool: Floats) -> _Labels:
    """The first labels, weighted within octaves by their design, and the test labels of attempts that were spent: drawn
    uniformly, they weigh 1, as the first do on average, so that weighting all of them once more changes nothing."""
    rows = [row for attempt in spent for row in _first_of_groups(attempts.fresh_rows(store, attempt))]
    first = attempts.without(data, [row for attempt in spent for row in attempts.fresh_rows(store, attempt)])
    scored = ~np.isnan(first.scores)
    weights = (first.design.weights if first.design else np.ones(len(first.rows)))[scored]
    positions = build_ladder(pool, flag_when=data.flag_when).positions(first.scores[scored])
    return _Labels(
        np.concatenate([first.scores[scored], _score_values(rows)]),
        np.concatenate([first.labels[scored], _hallucinated_rows(rows)]),
        np.concatenate([local_weights(positions, weights), np.ones(len(rows))]),
    )


def _find_spent_attempts(store: Store, data: evidence.Evidence) -> list[Attempt]:
    """The attempts on these labels that count, newest first: those whose traces were drawn."""
    must_describe_traffic(data.caution)
    family = attempts.family(store, data.config.name, data.config.id, attempts.first_names(data.sample))
    spent = [attempt for attempt in family if attempt.fresh_sample_id is not None]
    if spent and spent[0].outcome is None:
        number = spent[0].plan.attempt
        raise BadInput(f"attempt {number} on these labels is under way: label all of its traces and finish it first")
    return spent


def _load_pool_scores(store: Store, config: Config, where: TraceFilter) -> Floats:
    """The window's scores, NaN for a trace that the detector could not score."""
    values = store.scores.window(config.id, where)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _count_testable(store: Store, data: evidence.Evidence, terms: Terms, spent: Sequence[Attempt], pool: Floats) -> int:
    """Scored traces of the window that were not among the labels of the plan: those that the loosest cut flags."""
    if np.isnan(pool).all() or not terms.samples:
        return 0  # where every label is a first one, no labelled trace is left, and what nobody labelled is a rest
    loosest = np.nanmin(pool) if data.flag_when == "above" else np.nanmax(pool)
    apart = attempts.planned_on(store, terms.samples, spent)
    return samples.flagged_pool(store, Cut(data.config.id, float(loosest), apart), terms.where, fresh=False)


def _check_enough(name: str, fixed: Plan, n: int, *, fewer: bool) -> None:
    few = least(fixed)
    if n >= fixed.labels or (fewer and n >= few):
        return
    if n < few:
        raise BadInput(
            f"the plan asks for {fixed.labels} flagged traces to test on, and {n} are there: score what came in since "
            f"(`detect {name} --all`), or wait for traffic; fewer than {few} certify nothing, even if all of them are "
            "hallucinated"
        )
    raise BadInput(
        f"the plan asks for {fixed.labels} flagged traces to test on, and {n} are there: score what came in since "
        f"(`detect {name} --all`), or wait for traffic; or draw these {n} (`certify {name} --fewer`): less likely to "
        "certify, and as valid"
    )


def _check_labelled(rows: Sequence[Row]) -> None:
    if not rows:
        raise BadInput("no test traces are drawn yet: draw them first")
    if left := sum(row.gold is None for row in rows):
        raise BadInput(
            f"{left} of the {len(rows)} test traces have no label yet: label all of them (say unsure where you cannot "
            "tell). A test that may be done early is done when it looks good, and then proves nothing"
        )


def _first_of_groups(rows: Sequence[Row]) -> list[Row]:
    return [rows[place] for place in first_of_each([row.group for row in rows], len(rows))]


def _score_values(rows: Sequence[Row]) -> Floats:
    return np.array([np.nan if row.value is None else row.value for row in rows], dtype=np.float64)


def _hallucinated_rows(rows: Sequence[Row]) -> Bools:
    return np.array([row.gold == "hallucinated" for row in rows], dtype=bool)

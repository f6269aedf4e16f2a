"""Plan a certificate: what its labels are, which traffic it may be tested on, and what a budget is likely to buy."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.stats.certification.certificates import Evidence, NotCertifiable, Offer, Plan
from calibrate.stats.certification.ladder import build_ladder, local_weights
from calibrate.stats.certification.offers import offer_budgets
from calibrate.stats.certification.stage_a import STAGE_A_SHARE, plan_certificate, read_evidence
from calibrate.stats.certification.walks import AT_LEAST
from calibrate.stats.sampling.designs import Cut
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.types import FlagWhen, TraceFilter
from calibrate.workflow.certification import attempts, ledger
from calibrate.workflow.certification.attempts import Attempt, Terms
from calibrate.workflow.evidence import evidence
from calibrate.workflow.evidence.basis import must_describe_traffic
from calibrate.workflow.sampling import sample as samples
from db import Store
from db.scores import Config, Row

TARGET = 0.7
MOST, SHUFFLES = 10_000, 5  # traces whose sources are looked at, and how often test labels are drawn from them
REPLANS = 5  # how often a plan is made smaller, until as many traces are there as it asks for
NEARLY_ALL = 0.98  # of test labels on sources of their own: then the plan need not know of sources


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

    `budget`: test labels it may cost, default `usual_budget`, or what the attempt before said it would take. Where the
    chance to certify anything is below SLIM, nothing is kept. Raises BadInput while an attempt on these labels is under
    way, and for labels or scores that cannot be planned on.
    """
    spent = _find_spent_attempts(store, data)
    previous = spent[0].outcome if spent else None
    terms = Terms(
        samples=attempts.first_names(data.sample),
        where=_window(data),
        budget=budget or (previous and previous.needed) or usual_budget(len(data.rows)),
        seed=secrets.randbits(31) if seed is None else seed,
        part=data.part,
    )
    pool = load_pool_scores(store, data.config, terms.where)
    labels = collect_labels(store, data, spent, pool)
    testable = count_testable(store, data, terms, spent, pool)
    number = ledger.next_attempt(store, target, terms.where).attempt

    def make(fresh: int, sources: float) -> Plan | NotCertifiable:
        return plan_certificate(
            labels.scores,
            labels.hallucinated,
            labels.weights,
            pool,
            target,
            budget=terms.budget,
            rng=np.random.default_rng(terms.seed),
            fresh=fresh,
            flag_when=data.flag_when,
            attempt=number,
            sources=sources,
        )

    def make_drawable(sources: float) -> Plan | NotCertifiable:
        """A plan that asks for no more traces than its deepest cut flags of those that may be drawn."""
        fresh, result = testable, make(testable, sources)
        for _ in range(REPLANS):
            if not isinstance(result, Plan):
                break
            cut = Cut(data.config.id, result.deepest, attempts.planned_on(store, terms.samples, spent))
            flagged = samples.flagged_pool(store, cut, terms.where, fresh=False) if terms.samples else 0
            if flagged >= result.labels:
                break
            # Labels are most among the most suspicious: fewer of these are left than their share of the traffic.
            fresh = min(fresh - 1, int(flagged / result.shares[-1]))
            result = make(fresh, sources)
        return result

    result = make_drawable(1.0)
    if isinstance(result, Plan):
        sources = share_of_sources(store, data, terms.where, result.deepest, result.labels)
        result = result if sources > NEARLY_ALL else make_drawable(sources)
    if isinstance(result, NotCertifiable):
        why = result.why
        return replace(result, why=replace(why, fresh=testable)) if why.fresh is not None else result
    row = store.certifications.start(
        data.config.name,
        config_id=data.config.id,
        sample_id=data.sample.id or None if data.sample else None,
        plan=attempts.plan_to_json(result, terms),
        by=by,
        now=now,
    )
    return attempts.attempt_of(row)


def offers(
    store: Store, data: evidence.Evidence, *, target: float = TARGET, seed: int | None = None
) -> tuple[Offer, ...]:
    """What few, the usual number and many test labels are likely to buy. Nothing is kept. Raises as `plan` does."""
    spent = _find_spent_attempts(store, data)
    where = _window(data)
    terms = Terms(attempts.first_names(data.sample), where, 0, seed or 0, data.part)
    pool = load_pool_scores(store, data.config, where)
    given = collect_labels(store, data, spent, pool)
    labelled = read_evidence(given.scores, given.hallucinated, given.weights, pool, flag_when=data.flag_when)
    return offer_budgets(
        labelled,
        target,
        fresh=count_testable(store, data, terms, spent, pool),
        rng=np.random.default_rng(terms.seed),
        attempt=ledger.next_attempt(store, target, where).attempt,
    )


def beside(offers: Sequence[Offer], plan: Plan, available: int) -> tuple[Offer, ...]:
    """The offers that can stand beside a plan: what could not be drawn is left out, and for as many labels as the plan
    asks for its own figures stand, which know of sources and of the traces that are left."""
    others = [offer for offer in offers if offer.labels <= available and offer.labels != plan.labels]
    mine = Offer(plan.labels, plan.chance, plan.recall or 0.0, plan.chance_unsure or 0.0)
    return tuple(sorted((*others, mine), key=lambda offer: offer.labels))


def share_of_sources(store: Store, data: evidence.Evidence, where: TraceFilter, cut: float, labels: int) -> float:
    """How many of so many test labels are likely to be the first of their sources, as a share."""
    drawn = store.coverage.draw(data.config.id, where, MOST, rng=np.random.default_rng(0))
    flagged = np.flatnonzero(flags(drawn.scores, cut, data.flag_when))
    rng = np.random.default_rng(0)
    taken = min(labels, len(flagged))
    shares = []
    for _ in range(SHUFFLES if taken else 0):
        groups = [drawn.groups[row] for row in rng.choice(flagged, taken, replace=False)]
        shared = [group for group in groups if group.startswith("group ")]
        shares.append((taken - len(shared) + len(set(shared))) / taken)
    return float(np.mean(shares)) if shares else 1.0


def _window(data: evidence.Evidence) -> TraceFilter:
    return replace(data.sample.filter if data.sample else TraceFilter(), until=None, label="any")


@dataclass(frozen=True)
class FitLabels:
    """Scored labels and their weights in the fit."""

    scores: Floats
    hallucinated: Bools
    weights: Floats

    def evidence(self, pool: Floats, flag_when: FlagWhen) -> Evidence:
        rungs = build_ladder(pool, flag_when=flag_when)
        return Evidence(
            rungs, rungs.describe(self.scores), self.hallucinated.astype(np.float64), self.weights, flag_when
        )


def collect_labels(store: Store, data: evidence.Evidence, spent: Sequence[Attempt], pool: Floats) -> FitLabels:
    """The first labels, weighted within octaves by their design, and the test labels of attempts that were spent: drawn
    uniformly, they weigh 1, as the first do on average, so that weighting all of them once more changes nothing."""
    rows = [row for attempt in spent for row in _first_of_groups(attempts.fresh_rows(store, attempt))]
    first = attempts.without(data, [row for attempt in spent for row in attempts.fresh_rows(store, attempt)])
    scored = ~np.isnan(first.scores)
    weights = (first.design.weights if first.design else np.ones(len(first.rows)))[scored]
    positions = build_ladder(pool, flag_when=data.flag_when).positions(first.scores[scored])
    return FitLabels(
        np.concatenate([first.scores[scored], score_values(rows)]),
        np.concatenate([first.labels[scored], hallucinated_rows(rows)]),
        np.concatenate([local_weights(positions, weights), np.ones(len(rows))]),
    )


def _find_spent_attempts(store: Store, data: evidence.Evidence) -> list[Attempt]:
    """The attempts on these labels that count, newest first: those whose traces were drawn."""
    must_describe_traffic(data.caution)
    family = attempts.family(store, data.config.name, data.config.id, attempts.first_names(data.sample), data.part)
    spent = [attempt for attempt in family if attempt.fresh_sample_id is not None]
    if spent and spent[0].outcome is None:
        number = spent[0].plan.attempt
        raise BadInput(f"attempt {number} on these labels is under way: label all of its traces and finish it first")
    return spent


def load_pool_scores(store: Store, config: Config, where: TraceFilter) -> Floats:
    """The window's scores, NaN for a trace that the detector could not score."""
    return store.scores.window(config.id, where)


def count_testable(store: Store, data: evidence.Evidence, terms: Terms, spent: Sequence[Attempt], pool: Floats) -> int:
    """Scored traces of the window that were not among the labels of the plan: those that the loosest cut flags."""
    if np.isnan(pool).all() or not terms.samples:
        return 0  # where every label is a first one, no labelled trace is left, and what nobody labelled is a rest
    loosest = np.nanmin(pool) if data.flag_when == "above" else np.nanmax(pool)
    apart = attempts.planned_on(store, terms.samples, spent)
    return samples.flagged_pool(store, Cut(data.config.id, float(loosest), apart), terms.where, fresh=False)


def _first_of_groups(rows: Sequence[Row]) -> list[Row]:
    return [rows[place] for place in first_of_each([row.group for row in rows], len(rows))]


def score_values(rows: Sequence[Row]) -> Floats:
    return np.array([np.nan if row.value is None else row.value for row in rows], dtype=np.float64)


def hallucinated_rows(rows: Sequence[Row]) -> Bools:
    return np.array([row.gold == "hallucinated" for row in rows], dtype=bool)

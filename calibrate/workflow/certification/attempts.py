"""Attempts to certify a threshold as the store keeps them: what was planned, how far it is, what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from calibrate.orientation import flags
from calibrate.stats.certification.certificates import Certified, NotCertifiable, Plan, Shortfall, ShortfallReason, Step
from calibrate.stats.sampling.designs import Cut
from calibrate.types import Guarantee, Interval, Sample, TraceFilter
from calibrate.workflow.evidence import evidence, loading
from db import Store
from db.chosen import Certification
from db.scores import Row

Stage = Literal["planned", "drawn", "labelled", "certified", "not certifiable"]


@dataclass(frozen=True)
class Terms:
    """What was fixed with a plan: the `samples` of its first labels (none: every label), the window that fresh traces
    come from, the labels that it might have cost, the seed."""

    samples: tuple[str, ...]
    where: TraceFilter
    budget: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: a `guarantee` for flagging at `cut`, or neither and `why` not (a sentence, as older
    stores kept it, or the reason).

    `needed`: fresh labels that another attempt would take, None where no number is likely to do. `unsure` labels,
    disputed ones among them, were counted as not hallucinated; `repeats` share their sources with an earlier label
    and were not counted.
    """

    cut: float | None
    guarantee: Guarantee | None
    why: Shortfall | str | None
    needed: int | None
    unsure: int
    repeats: int
    walk: tuple[Step, ...]


@dataclass(frozen=True)
class CertificationStatus:
    """Where an attempt stands. `fresh` is the sample drawn by the plan, of which `labelled` have a verdict."""

    certification: Certification
    plan: Plan
    terms: Terms
    fresh: Sample | None
    labelled: int
    outcome: Outcome | None

    @property
    def stage(self) -> Stage:
        if self.outcome:
            return "certified" if self.outcome.guarantee else "not certifiable"
        if self.fresh is None:
            return "planned"
        return "labelled" if self.labelled == self.fresh.size else "drawn"


def standing(store: Store, detector: str, *, config_id: int | None = None) -> CertificationStatus | None:
    """Where the newest attempt of a detector (of one of its configurations) stands; None before the first."""
    known = store.certifications.of(detector)
    newest = next((one for one in known if config_id is None or one.config_id == config_id), None)
    return None if newest is None else standing_of(store, newest)


def certified(store: Store, detector: str, config_id: int, target: float) -> CertificationStatus | None:
    """The newest attempt of a configuration that certified this target; later ones at others do not undo it."""
    for one in store.certifications.of(detector):
        at = standing_of(store, one) if one.config_id == config_id and one.outcome is not None else None
        if at and at.stage == "certified" and at.plan.target == target:
            return at
    return None


@dataclass(frozen=True)
class Overturned:
    """A certificate whose labels have changed since: of those that gave it, `hallucinated` still are."""

    detector: str
    guarantee: Guarantee
    hallucinated: int


def overturned(store: Store, detector: str, guarantee: Guarantee) -> Overturned | None:
    """How the labels of a certificate have changed since, so that it no longer holds; None where it does."""
    for attempt in store.certifications.of(detector):
        at = standing_of(store, attempt)
        if at.outcome is None or at.outcome.guarantee != guarantee or at.outcome.cut is None:
            continue
        cut, way = at.outcome.cut, at.plan.flag_when
        rows = [row for row in fresh_rows(store, attempt) if row.value is not None and flags(row.value, cut, way)]
        hits = sum(row.gold == "hallucinated" for row in rows)
        if hits < guarantee.hallucinated:
            return Overturned(detector, guarantee, hits)
    return None


def standing_of(store: Store, one: Certification) -> CertificationStatus:
    labelled = sum(row.gold is not None for row in fresh_rows(store, one))
    return CertificationStatus(one, plan_of(one), terms_of(one), fresh_of(store, one), labelled, outcome_of(one))


def family(store: Store, detector: str, config_id: int, samples: Sequence[str]) -> list[Certification]:
    """The attempts of one configuration on the same first labels, newest first."""
    known = (one for one in store.certifications.of(detector) if one.config_id == config_id)
    return [one for one in known if terms_of(one).samples == tuple(samples)]


def siblings(store: Store, one: Certification) -> list[Certification]:
    """The family that an attempt belongs to, itself included."""
    return family(store, one.detector, one.config_id, terms_of(one).samples)


def first_names(sample: Sample | None) -> tuple[str, ...]:
    """The names of the samples that the first labels are of; none for every label."""
    return sample.names if sample else ()


def fresh_of(store: Store, one: Certification) -> Sample | None:
    return next((sample for sample in store.samples.list() if sample.id == one.fresh_sample_id), None)


def fresh_rows(store: Store, one: Certification) -> list[Row]:
    """The fresh traces in the order drawn, with whatever verdict there is; none before the draw."""
    return store.scores.members(one.config_id, one.fresh_sample_id) if one.fresh_sample_id is not None else []


def first_labels(store: Store, one: Certification) -> evidence.Evidence:
    """The labels that an attempt was planned on, as they stand now, without those of fresh traces."""
    config = store.scores.get_config(one.config_id)
    data = loading.load_evidence(store, one.detector, sample=terms_of(one).samples or None, config=config)
    return without(data, [row for each in siblings(store, one) for row in fresh_rows(store, each)])


def without(data: evidence.Evidence, rows: Sequence[Row]) -> evidence.Evidence:
    taken = {row.pk for row in rows}
    return replace(data, rows=tuple(row for row in data.rows if row.pk not in taken))


def cut_of(one: Certification) -> Cut:
    return Cut(one.config_id, plan_of(one).deepest)


def kept(plan: Plan, terms: Terms) -> dict[str, Any]:
    """A plan as the store keeps it: without the arrays it was made from, which its labels make again."""
    fixed = {name: value for name, value in vars(plan).items() if name != "evidence"}
    return {**fixed, **asdict(terms), "where": terms.where.to_json()}


def plan_of(one: Certification) -> Plan:
    fixed = {name: one.plan[name] for name in Plan.__dataclass_fields__ if name != "evidence"}
    precision = tuple(tuple(expected) for expected in fixed["precision"])
    return Plan(**{**fixed, "cuts": tuple(fixed["cuts"]), "shares": tuple(fixed["shares"]), "precision": precision})


def terms_of(one: Certification) -> Terms:
    given = one.plan
    return Terms(tuple(given["samples"]), TraceFilter.from_json(given["where"]), given["budget"], given["seed"])


def outcome_of(one: Certification) -> Outcome | None:
    if one.outcome is None:
        return None
    sure: Mapping[str, Any] | None = one.outcome["guarantee"]
    walk = tuple(Step(**step) for step in one.outcome["walk"])
    guarantee, why = Guarantee(**sure) if sure else None, _why_of(one.outcome["why"])
    return Outcome(**{**one.outcome, "guarantee": guarantee, "why": why, "walk": walk})


def _why_of(document: Mapping[str, Any] | str | None) -> Shortfall | str | None:
    if document is None or isinstance(document, str):
        return document
    best = document["best"]
    return Shortfall(ShortfallReason(document["reason"]), Interval(**best) if best else None, document["fresh"])


def came_of(found: Certified | NotCertifiable, *, sample: str | None, unsure: int, repeats: int) -> Outcome:
    """The outcome to keep of a test on the labels of a sample."""
    if isinstance(found, NotCertifiable):
        return Outcome(None, None, found.why, found.needed, unsure, repeats, found.walk)
    sure = Guarantee("certified", found.target, 1 - found.alpha, found.bound, found.m, found.k, sample)
    return Outcome(found.cut, sure, None, None, unsure, repeats, found.walk)

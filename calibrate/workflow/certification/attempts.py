"""Attempts to certify a threshold: what was planned, how far each is, what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from calibrate.orientation import flags
from calibrate.stats.certification.certificates import Certified, NotCertifiable, Plan, Shortfall, ShortfallReason, Step
from calibrate.stats.sampling.designs import Cut
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.types import Guarantee, Interval, Part, Sample, TraceFilter
from calibrate.workflow.certification.in_segment import in_segment
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import basis_of_saved
from calibrate.workflow.evidence.counted_labels import without_set_aside
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.attempts import Certification
from db.scores import Row

Stage = Literal["planned", "drawn", "labelled", "certified", "not certifiable"]


@dataclass(frozen=True)
class Terms:
    """The terms fixed with a plan: the `samples` of its first labels (none: every label, in an older store), the window
    that test traces come from, the budget in labels and the seed. `part`: the segment that the certificate is of,
    which the window holds alone; None for all traffic of the window.
    """

    samples: tuple[str, ...]
    where: TraceFilter
    budget: int
    seed: int
    part: Part | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: a `guarantee` for flagging at `cut`, or neither and `why` not (a sentence, as older
    stores kept it, or the reason).

    `needed`: test labels that another attempt would take, None where no number is likely to do. `unsure` labels,
    disputed ones among them, were counted as not hallucinated; `repeats` share their sources with an earlier label:
    they count among all labels, and not where one label a source does.
    """

    cut: float | None
    guarantee: Guarantee | None
    why: Shortfall | str | None
    needed: int | None
    unsure: int
    repeats: int
    walk: tuple[Step, ...]


@dataclass(frozen=True)
class Attempt:
    """One attempt.

    `fresh_sample_id` is None until the plan's traces are drawn; `outcome` is None until that sample is labelled and
    tested.
    """

    id: int
    detector: str
    config_id: int
    fresh_sample_id: int | None
    plan: Plan
    terms: Terms
    outcome: Outcome | None
    started_by: str
    started_at: datetime


@dataclass(frozen=True)
class Overturned:
    """A certificate whose labels have changed since: of those that gave it, `hallucinated` still are, and `unsure` are
    unsure or disputed. `part`: the segment that it is of."""

    detector: str
    guarantee: Guarantee
    hallucinated: int
    unsure: int
    part: Part | None = None


@dataclass(frozen=True)
class CertificationStatus:
    """How far an attempt has got.

    `fresh` is the sample drawn by its plan, of which `labelled` traces have a verdict. `overturned` says that its
    certificate no longer holds, as labels have changed since.
    """

    attempt: Attempt
    fresh: Sample | None
    labelled: int
    overturned: Overturned | None = None

    @property
    def plan(self) -> Plan:
        return self.attempt.plan

    @property
    def terms(self) -> Terms:
        return self.attempt.terms

    @property
    def outcome(self) -> Outcome | None:
        return self.attempt.outcome

    @property
    def stage(self) -> Stage:
        if self.outcome:
            return "certified" if self.outcome.guarantee else "not certifiable"
        if self.fresh is None:
            return "planned"
        return "labelled" if self.labelled == self.fresh.size else "drawn"


def command(attempt: Attempt) -> str:
    """The command that goes on with an attempt."""
    return certify_command(attempt.detector, attempt.terms.part)


def certify_command(detector: str, part: Part | None) -> str:
    """The command that certifies a detector, for all traffic or for a segment."""
    return f"certify {detector}" + (f" --by {shlex.quote(part.by)} --segment {shlex.quote(part.name)}" if part else "")


def attempts_of(store: Store, detector: str) -> list[Attempt]:
    """Every attempt of a detector, newest first."""
    return [attempt_of(row) for row in store.certifications.of(detector)]


def latest_status(
    store: Store, detector: str, *, config_id: int | None = None, part: Part | None = None
) -> CertificationStatus | None:
    """Find out how far the newest attempt of a detector or a configuration has got, on all traffic or on a segment;
    None before the first."""
    for attempt in attempts_of(store, detector):
        if config_id in (None, attempt.config_id) and attempt.terms.part == part:
            return status_of(store, attempt)
    return None


def certified(store: Store, detector: str, config_id: int, target: float) -> CertificationStatus | None:
    """The newest attempt that certified this target for all traffic. Later attempts at other targets do not undo it."""
    for attempt in attempts_of(store, detector):
        proven = attempt.outcome is not None and attempt.outcome.guarantee is not None
        if proven and (attempt.config_id, attempt.plan.target, attempt.terms.part) == (config_id, target, None):
            return status_of(store, attempt)
    return None


def overturned(store: Store, detector: str, guarantee: Guarantee) -> Overturned | None:
    """Check whether the labels behind a certificate have changed so that it no longer holds; None if it holds."""
    for attempt in attempts_of(store, detector):
        if attempt.outcome is None or attempt.outcome.guarantee != guarantee:
            continue
        if change := _overturned_by(attempt, fresh_rows(store, attempt)):
            return change
    return None


def _overturned_by(attempt: Attempt, rows: Sequence[Row]) -> Overturned | None:
    """What the labels of the test traces as they stand now say against an attempt's certificate."""
    outcome, flag_when = attempt.outcome, attempt.plan.flag_when
    if outcome is None or outcome.guarantee is None or outcome.cut is None:
        return None
    cut = outcome.cut
    rows = [row for row in rows if row.value is not None]
    first = [rows[place] for place in first_of_each([row.group for row in rows], len(rows))]
    flagged, first_flagged = (
        [row.gold for row in each if flags(row.value or 0.0, cut, flag_when)] for each in (rows, first)
    )
    hits, step = flagged.count("hallucinated"), next(step for step in outcome.walk if step.cut == cut)
    if hits >= outcome.guarantee.hallucinated and first_flagged.count("hallucinated") >= (step.first_hallucinated or 0):
        return None
    unsure = flagged.count("unsure") + flagged.count("disputed")
    return Overturned(attempt.detector, outcome.guarantee, hits, unsure, attempt.terms.part)


def status_of(store: Store, attempt: Attempt) -> CertificationStatus:
    rows = fresh_rows(store, attempt)
    labelled = sum(row.gold is not None for row in rows)
    return CertificationStatus(attempt, fresh_sample(store, attempt), labelled, _overturned_by(attempt, rows))


def family(
    store: Store, detector: str, config_id: int, samples: Sequence[str], part: Part | None = None
) -> list[Attempt]:
    """The attempts of one configuration on the same first labels, of all traffic or of a segment, newest first: each
    learns of those before it."""
    return [
        attempt
        for attempt in attempts_of(store, detector)
        if attempt.config_id == config_id and set(attempt.terms.samples) == set(samples) and attempt.terms.part == part
    ]


def siblings(store: Store, attempt: Attempt) -> list[Attempt]:
    """The family that an attempt belongs to, itself included."""
    return family(store, attempt.detector, attempt.config_id, attempt.terms.samples, attempt.terms.part)


def first_names(sample: Sample | None) -> tuple[str, ...]:
    """The names of the samples that the first labels come from; empty if every label was used."""
    return sample.names if sample else ()


def fresh_sample(store: Store, attempt: Attempt) -> Sample | None:
    return next((sample for sample in store.samples.list() if sample.id == attempt.fresh_sample_id), None)


def fresh_rows(store: Store, attempt: Attempt) -> list[Row]:
    """The test traces in the order drawn, with whatever verdict they have; none before the draw. A test that is not
    done goes without those that were set aside for a judge's prompt; what is certified stands on what it stood on."""
    if attempt.fresh_sample_id is None:
        return []
    rows = store.scores.members(attempt.config_id, attempt.fresh_sample_id)
    return rows if attempt.outcome is not None else without_set_aside(store, rows)


def first_labels(store: Store, attempt: Attempt) -> Evidence:
    """The labels that an attempt was planned on, as they stand now, without those of test traces."""
    config = store.scores.get_config(attempt.config_id)
    basis = basis_of_saved(store, attempt.terms.samples)
    data = loading.load_evidence(store, attempt.detector, basis=basis, config=config)
    data = in_segment(store, data, attempt.terms.part) if attempt.terms.part else data
    return without(data, [row for sibling in siblings(store, attempt) for row in fresh_rows(store, sibling)])


def cut_of(store: Store, attempt: Attempt) -> Cut:
    """The threshold whose flagged traces are drawn, apart from those whose labels planned it."""
    earlier = [each for each in siblings(store, attempt) if each.id < attempt.id]
    apart = planned_on(store, attempt.terms.samples, earlier)
    return Cut(attempt.config_id, attempt.plan.deepest, apart)


def planned_on(store: Store, samples: Sequence[str], spent: Sequence[Attempt]) -> tuple[int, ...]:
    """The keys of the samples whose labels make a plan: the first ones, and those drawn by earlier attempts."""
    first = [sample.id for name in samples if (sample := store.samples.get(name)) is not None]
    return (*first, *(attempt.fresh_sample_id for attempt in spent if attempt.fresh_sample_id is not None))


def without(data: Evidence, rows: Sequence[Row]) -> Evidence:
    left_out = {row.pk for row in rows}
    return replace(data, rows=tuple(row for row in data.rows if row.pk not in left_out))


def outcome_of_test(result: Certified | NotCertifiable, *, sample: str | None, unsure: int, repeats: int) -> Outcome:
    """The outcome of a test on the labels of a sample."""
    if isinstance(result, NotCertifiable):
        return Outcome(None, None, result.why, result.needed, unsure, repeats, result.walk)
    confidence = 1 - result.alpha
    guarantee = Guarantee("certified", result.target, confidence, result.bound, result.m, result.k, sample)
    return Outcome(result.cut, guarantee, None, None, unsure, repeats, result.walk)


def plan_to_json(plan: Plan, terms: Terms) -> dict[str, Any]:
    """Write a plan as JSON without its arrays, which are computed again from the labels."""
    fixed = {name: value for name, value in vars(plan).items() if name != "evidence"}
    return {**fixed, **asdict(terms), "where": terms.where.to_json()}


def attempt_of(row: Certification) -> Attempt:
    """Read an attempt from its row in the store."""
    return Attempt(
        id=row.id,
        detector=row.detector,
        config_id=row.config_id,
        fresh_sample_id=row.fresh_sample_id,
        plan=_read_plan(row.plan),
        terms=Terms(
            tuple(row.plan["samples"]),
            TraceFilter.from_json(row.plan["where"]),
            row.plan["budget"],
            row.plan["seed"],
            Part(**row.plan["part"]) if row.plan.get("part") else None,
        ),
        outcome=None if row.outcome is None else _read_outcome(row.outcome),
        started_by=row.started_by,
        started_at=row.started_at,
    )


def _read_plan(document: Mapping[str, Any]) -> Plan:
    fixed = {name: document[name] for name in Plan.__dataclass_fields__ if name in document}
    precision = tuple(tuple(expected) for expected in fixed["precision"])
    return Plan(**{**fixed, "cuts": tuple(fixed["cuts"]), "shares": tuple(fixed["shares"]), "precision": precision})


def _read_outcome(document: Mapping[str, Any]) -> Outcome:
    guarantee: Mapping[str, Any] | None = document["guarantee"]
    walk = tuple(Step(**step) for step in document["walk"])
    sure, why = Guarantee(**guarantee) if guarantee else None, _read_shortfall(document["why"])
    return Outcome(**{**document, "guarantee": sure, "why": why, "walk": walk})


def _read_shortfall(document: Mapping[str, Any] | str | None) -> Shortfall | str | None:
    if document is None or isinstance(document, str):
        return document
    best = document["best"]
    return Shortfall(
        ShortfallReason(document["reason"]),
        Interval(**best) if best else None,
        document["fresh"],
        document.get("labels"),
        document.get("chance"),
    )

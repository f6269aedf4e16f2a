"""`recalibrate`: choose all thresholds again after an upgrade, and release them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput, TouchstoneError
from calibrate.report import numbers
from calibrate.report.sentences.detection import detection as sentences
from calibrate.report.sentences.labelling.labels import caution
from calibrate.report.sentences.releasing import impact as impacts
from calibrate.report.sentences.releasing import recalibration
from calibrate.report.sentences.releasing.release import overtaken, unannounced
from calibrate.report.sentences.tuning import point_state
from calibrate.report.tables.column import cells
from calibrate.report.tables.recalibration import ON_TERMINAL
from calibrate.thresholds.files import check_place
from calibrate.thresholds.signing import read_signer
from calibrate.types import Interval, Strength
from calibrate.urls import redact
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.releasing import approval
from calibrate.workflow.releasing.announce import announce
from calibrate.workflow.upgrade import planning
from calibrate.workflow.upgrade import recalibrate as step
from db import Store
from db.releases import Release
from db.runs import ENDED


@dataclass(frozen=True, slots=True)
class ThresholdDocument:
    before: float
    after: float | None


@dataclass(frozen=True, slots=True)
class DetectorDocument:
    """A detector and its new threshold; `stays` says why it has none, `remark` what to know of it."""

    detector: str
    changes: Sequence[str]
    policy: str
    threshold: ThresholdDocument
    strength: Strength | None
    precision: Interval | None
    recall: Interval | None
    stays: str | None
    remark: str | None


@dataclass(frozen=True)
class RecalibrateDocument:
    """What a recalibration changes; `version` is the release that it became."""

    against: int
    sample: str | None
    labels: int
    why: Sequence[str]
    caution: str | None
    detectors: Sequence[DetectorDocument]
    changes: Sequence[str]
    sentence: str | None
    worse: Sequence[str]
    left_out: Sequence[str]
    version: int | None
    evidence: LabelsAtHand

    @classmethod
    def of(cls, outcome: step.Outcome, at_hand: LabelsAtHand, version: int | None = None, **more: Any) -> Self:
        plan, impact = outcome.plan, outcome.impact
        return cls(
            against=plan.release.version,
            sample=plan.sample.name if plan.sample else None,
            labels=plan.labels,
            why=recalibration.reasons(plan),
            caution=caution(plan.caution),
            detectors=[_detector(redone) for redone in outcome.redone],
            changes=[str(change) for change in outcome.changes],
            sentence=impacts.summary(impact) if impact else None,
            worse=[impacts.worse(check) for check in outcome.worse],
            left_out=outcome.left_out,
            version=version,
            evidence=at_hand,
            **more,
        )


@dataclass(frozen=True)
class ReleasedDocument(RecalibrateDocument):
    problems: Sequence[str]


@dataclass(frozen=True)
class ProposedDocument(RecalibrateDocument):
    proposal: int


def run(args: Namespace) -> Answer:
    after = settings.releases()
    store, params = open_store(args), parse_pairs(args.param, "--param")
    out = None if args.out is None else check_place(args.out, store=store.file)
    plan = planning.plan(store, sample=args.sample, params=params)
    if queued := planning.queue(store, plan, budget=args.budget):
        _carry_out(args, store, queued.id)
        plan = planning.plan(store, sample=args.sample, params=params)
    results = step.redo(store, plan, policy=args.policy)
    outcome = step.look(store, plan, results, by=user(), now=now())
    at_hand = labels_at_hand(store, plan.sample)
    lines = list(_sentences(outcome, at_hand))
    if args.dry_run or not outcome.changes:
        lines.append("Dry run: nothing was released." if outcome.changes else f"v{plan.release.version} stands.")
        # Nothing was released, and what stands is no longer certified: a script must not take that for well.
        lost = any(redone.stays and redone.stays.overturned for redone in outcome.redone)
        return Answer(RecalibrateDocument.of(outcome, at_hand), "\n".join(lines), exit_code=2 if lost else 0)
    released = step.release(
        store, outcome, note=args.note or f"Recalibrated after v{plan.release.version}.", reason=args.reason.strip(),
        by=user(), now=now(), out=out, approval=after.approval, sign=read_signer(after.sign),
    )  # fmt: skip
    if isinstance(released, Release):
        problems = [overtaken(past) for past in approval.overtaken(store, released.version)]
        problems += [unannounced(failure) for failure in announce(released, after, store)]
        lines += [f"v{released.version} is released{f' and in {redact(out)}' if out else ''}.", *problems]
        return Answer(ReleasedDocument.of(outcome, at_hand, released.version, problems=problems), "\n".join(lines))
    lines.append(f"Proposal {released.id} waits for a second person: `release --approve {released.id}`.")
    return Answer(ProposedDocument.of(outcome, at_hand, proposal=released.id), "\n".join(lines))


def _carry_out(args: Namespace, store: Store, run_id: int) -> None:
    """Score the labelled traces here. Raises TouchstoneError where the run fails."""

    def say() -> str:
        run = store.runs.get(run_id)
        return sentences.stopped(run_id, run.done, run.total, "recalibrate")

    with when_stopped(say), progress(args, "scoring", "score") as advance:
        done = detect.work(store, run_id=run_id, on_progress=advance) or store.runs.get(run_id)
    if done.status == "failed":
        raise TouchstoneError(f"run {done.id} failed: {done.error}")
    if done.status not in ENDED:
        raise BadInput(f"run {done.id}, which scores the labels, is {done.status}: recalibrate when it is done")


def _detector(redone: step.Redone) -> DetectorDocument:
    due, point = redone.due, redone.point
    return DetectorDocument(
        detector=due.name,
        changes=due.changes,
        policy=due.entry.policy,
        threshold=ThresholdDocument(due.entry.threshold, point.threshold if point else None),
        strength=point.strength if point else None,
        precision=point.precision if point else None,
        recall=point.recall if point else None,
        stays=recalibration.stays(redone),
        remark=recalibration.remark(redone),
    )


def _sentences(outcome: step.Outcome, at_hand: LabelsAtHand) -> Iterator[str]:
    plan, reasons = outcome.plan, recalibration.reasons(outcome.plan)
    labels = numbers.count(plan.labels, "label") + (f" of {plan.sample.name}" if plan.sample else "")
    yield f"Against v{plan.release.version}, on {labels}. " + (
        "; ".join(reasons) + "." if reasons else "No detector changed, and none of these labels is new."
    )
    yield from labels_lines(at_hand)
    if plan.caution:
        yield f"caution: {caution(plan.caution)}."
    yield table(cells(ON_TERMINAL, outcome.redone))
    for redone in outcome.redone:
        if why := recalibration.stays(redone):
            yield f"{redone.due.name} stays as it is: {why}"
        if remark := recalibration.remark(redone):
            yield f"{redone.due.name}: {remark}"
    if outcome.impact:
        yield impacts.summary(outcome.impact)
    yield from (f"Worse: {impacts.worse(check)}" for check in outcome.worse)
    yield from (f"{judged.name}: {point_state.in_short(judged.state)}" for judged in outcome.known_bad)
    yield from (
        f"the ensemble {name} was made from scores that have changed, and is left out: make it again and save it"
        for name in outcome.left_out
    )

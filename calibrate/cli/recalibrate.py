"""Verbs after a release: what models there are, thresholds anew after an upgrade, the week's mechanical part."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, output_path, parse_pairs, user
from calibrate.errors import BadInput, TouchstoneError
from calibrate.report.numbers import share
from calibrate.report.sentences import impact as impacts
from calibrate.report.sentences import recalibration
from calibrate.report.sentences.evidence import uneven
from calibrate.report.sentences.release import unannounced
from calibrate.thresholds.files import scheme_of
from calibrate.types import OperatingPoint
from calibrate.workflow.detection import detect
from calibrate.workflow.releasing.announce import announce
from db import Store
from db.releases import Release


def run(args: Namespace) -> Answer:
    from calibrate.workflow.upgrade import planning
    from calibrate.workflow.upgrade import recalibrate as step

    after = settings.releases()
    out = None if args.out is None else args.out if scheme_of(args.out) else str(output_path(args.out, replace=True))
    found, params = open_store(args), parse_pairs(args.param, "--param")
    plan = planning.plan(found, sample=args.sample, params=params)
    if queued := planning.queue(found, plan, budget=args.budget):
        _carry_out(found, queued.id)
        plan = planning.plan(found, sample=args.sample, params=params)
    redone = step.redo(found, plan, policy=args.policy)
    outcome = step.look(found, plan, redone, by=user(), now=now())
    lines = list(_told(outcome))
    document = _document(outcome)
    if args.dry_run or not outcome.changes:
        lines.append("Dry run: nothing was released." if outcome.changes else f"v{plan.release.version} stands.")
        return Answer({**document, "version": None}, "\n".join(lines))
    made = step.release(
        found, outcome, note=args.note or f"Recalibrated after v{plan.release.version}.", reason=args.reason.strip(),
        by=user(), now=now(), out=out, approval=after.approval,
    )  # fmt: skip
    if isinstance(made, Release):
        problems = [unannounced(failure) for failure in announce(made, after)]
        lines += [f"v{made.version} is released{f' and in {out}' if out else ''}.", *problems]
        return Answer({**document, "version": made.version, "problems": problems}, "\n".join(lines))
    lines.append(f"Proposal {made.id} waits for a second person: `release --approve {made.id} --out FILE`.")
    return Answer({**document, "version": None, "proposal": made.id}, "\n".join(lines))


def _carry_out(found: Store, run_id: int) -> None:
    """Scores the labelled traces, here. Raises TouchstoneError where the run fails."""
    done = detect.work(found, run_id=run_id) or found.runs.get(run_id)
    if done.status == "failed":
        raise TouchstoneError(f"run {done.id} failed: {done.error}")
    if done.status != "done":
        raise BadInput(
            f"run {done.id}, which scores the labelled traces, is {done.status}: recalibrate when it is done"
        )


def _told(outcome: Any) -> Iterator[str]:
    plan, reasons = outcome.plan, recalibration.reasons(outcome.plan)
    labels = f"{plan.labels:,} labels" + (f" of {plan.sample.name}" if plan.sample else "")
    yield f"Against v{plan.release.version}, on {labels}. " + (
        "; ".join(reasons) + "." if reasons else "No detector changed, and none of these labels is new."
    )
    if plan.uneven:
        yield f"caution: {uneven(plan.uneven)}."
    for one in outcome.redone:
        if one.point is None:
            yield f"{one.due.name} stays as it is: {recalibration.stays(one)}"
            continue
        old, new = one.due.entry, one.point
        yield f"{one.due.name}: {old.limit} → {_at(new)} ({new.policy}, {new.strength}); {_measured(one)}"
        if remark := recalibration.remark(one):
            yield f"  {remark}"
    if outcome.impact:
        yield impacts.summary(outcome.impact)
        yield from (f"Worse: {impacts.worse(check)}" for check in outcome.impact.worse)
    yield from (
        f"the ensemble {name} was made from scores that have changed, and is left out: make it again and save it"
        for name in outcome.left_out
    )


def _at(point: OperatingPoint) -> str:
    return f"{'≥' if point.flag_when == 'above' else '≤'} {point.threshold:.4g}"


def _measured(one: Any) -> str:
    """What is flagged now against what was, on the same labels."""
    said = []
    for what in ("precision", "recall"):
        before = getattr(one.stood, what).value if one.stood else None
        after = getattr(one.point, what).value
        shown = ["unknown" if value is None else share(value) for value in (before, after)]
        said.append(f"{what} {' → '.join(shown)}")
    return ", ".join(said)


def _document(outcome: Any) -> dict[str, Any]:
    plan = outcome.plan
    return {
        "against": plan.release.version,
        "sample": plan.sample.name if plan.sample else None,
        "labels": plan.labels,
        "why": recalibration.reasons(plan),
        "caution": uneven(plan.uneven),
        "detectors": [
            {
                "detector": one.due.name,
                "changes": list(one.due.changes),
                "policy": one.due.entry.policy,
                "threshold": {"before": one.due.entry.threshold, "after": one.point and one.point.threshold},
                "strength": one.point.strength if one.point else None,
                "precision": asdict(one.point.precision) if one.point else None,
                "recall": asdict(one.point.recall) if one.point else None,
                "stays": recalibration.stays(one),
                "remark": recalibration.remark(one),
            }
            for one in outcome.redone
        ],
        "changes": [str(one) for one in outcome.changes],
        "sentence": impacts.summary(outcome.impact) if outcome.impact else None,
        "worse": [impacts.worse(check) for check in outcome.impact.worse] if outcome.impact else [],
        "left_out": list(outcome.left_out),
    }

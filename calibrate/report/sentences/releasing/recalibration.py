"""Why a recalibration is due and what it changes, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from calibrate.report.names import title_of
from calibrate.report.numbers import count
from calibrate.report.sentences.releasing import impact
from calibrate.report.sentences.tuning import certification, figures, point_state
from calibrate.report.sentences.watching import recheck
from calibrate.sanitize import one_line, visible
from calibrate.thresholds.segments import describe_segments
from calibrate.types import Segments
from calibrate.workflow.upgrade.planning import Plan
from calibrate.workflow.upgrade.recalibrate import Outcome, Redone


def reasons(plan: Plan) -> list[str]:
    """List the reasons to recalibrate; none where all is as it was at the release."""
    return list(_reasons(plan))


def doubts(outcome: Outcome) -> list[str]:
    """List what asks for a reason before it is released."""
    bad = [f"{title_of(judged.name)}: {point_state.in_short(judged.state).rstrip('.')}" for judged in outcome.known_bad]
    return [*(impact.worse(check) for check in outcome.worse), *bad]


def stays(redone: Redone) -> str | None:
    """Say why a detector stays as it is; None where it does not."""
    if redone.stays is None:
        return None
    if redone.stays.reason == "cannot run":
        return f"it cannot run here: {redone.stays.error}"
    if redone.stays.reason == "certificate holds":
        return "nothing of it changed, and its certificate stands"
    if redone.stays.overturned:
        return f"nothing of it changed, but {certification.overturned(redone.stays.overturned)}"
    return figures.why(redone.stays.nearest) if redone.stays.nearest else redone.stays.error


def remark(redone: Redone) -> str | None:
    """Say what to know of a new point; None where there is nothing."""
    parts = [_remark(redone), _segments(redone)]
    return "; ".join(part for part in parts if part) or None


def _segments(redone: Redone) -> str | None:
    """Say what becomes of the thresholds per segment; None where there were none."""
    before = redone.due.entry.segments
    if redone.point is None or before is None:
        return None
    by = one_line(before.by, 60)
    if redone.segments is not None:
        return f"its thresholds by {by} are chosen again: {one_line(describe_segments(redone.segments), 300)}"
    return (
        f"its thresholds by {by} are dropped, and it gets one for all: its policy and these labels offer none per "
        f"segment; {choose_segments(redone.due.name, before)} tries again"
    )


def choose_segments(detector: str, before: Segments) -> str:
    """Name the command that chooses thresholds per segment again."""
    return f"`segments {detector} --by {quote(visible(before.by, 100))} --save`"


def dropped(before: Segments) -> str:
    """Say that a threshold for all, once saved, takes the place of the live ones per segment."""
    return (
        f"live are thresholds by {one_line(before.by, 60)} ({one_line(describe_segments(before), 300)}): once this one "
        "is saved, the next release has one for all"
    )


def _remark(redone: Redone) -> str | None:
    if redone.remark is None or redone.point is None:
        return None
    if redone.remark == "certificate lost":
        return (
            "its certificate was for the old scores and cannot be carried over: the new threshold is "
            f"{redone.point.strength}; `certify {redone.due.name}` is next"
        )
    return (
        "its threshold was set by hand for the old scores and is kept as it is: look whether it still means the same, "
        "or choose by a rule (`--policy precision>=0.7`)"
    )


def _reasons(plan: Plan) -> Iterator[str]:
    release = f"v{plan.release.version}"
    for due in plan.upgraded:
        yield f"{title_of(due.name)} is not what {release} was made with: {', '.join(due.changes)}"
    for state in plan.fallen:
        yield recheck.verdict(state).rstrip(".")
    if plan.new_labels:
        yield f"{count(plan.new_labels)} of {count(plan.labels, 'label')} are newer than {release}"
    if plan.new_models:
        yield f"{', '.join(plan.new_models)}: labelled now, unknown to {release}"

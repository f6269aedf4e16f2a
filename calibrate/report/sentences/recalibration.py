"""Why a recalibration is due and what it changes, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.report.names import title_of
from calibrate.report.numbers import count
from calibrate.report.sentences import certification, figures, impact, point_state, recheck
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

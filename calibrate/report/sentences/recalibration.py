"""Why a recalibration is due, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.report.numbers import count
from calibrate.report.sentences import impact, recheck
from calibrate.report.sentences.evidence import uneven
from calibrate.workflow.upgrade.recalibrate import Outcome, Plan


def reasons(plan: Plan) -> list[str]:
    """List the reasons to recalibrate; none where all is as it was at the release."""
    return list(_reasons(plan))


def doubts(outcome: Outcome) -> list[str]:
    """List what asks for a reason before it is released."""
    caution = uneven(outcome.plan.uneven) if outcome.changes else None
    return [*(impact.worse(check) for check in outcome.worse), *([caution] if caution else [])]


def _reasons(plan: Plan) -> Iterator[str]:
    release = f"v{plan.release.version}"
    for due in plan.upgraded:
        yield f"{due.name} is not what {release} was made with: {', '.join(due.changes)}"
    for state in plan.fallen:
        yield recheck.verdict(state).rstrip(".")
    if plan.new_labels:
        yield f"{count(plan.new_labels)} of {count(plan.labels, 'label')} are newer than {release}"
    if plan.new_models:
        yield f"{', '.join(plan.new_models)}: labelled now, unknown to {release}"

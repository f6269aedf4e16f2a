"""Why a model has no baseline, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count
from calibrate.workflow.detection.baselines import Skipped


def skipped(row: Skipped) -> str:
    """Say why a statistic has no baseline: "5 of 5 clean traces: no tokens were logged"."""
    if not row.traces:
        return "; ".join(reason for reason, _ in row.reasons)
    return "; ".join(f"{count(n)} of {count(row.traces, 'clean trace')}: {reason}" for reason, n in row.reasons)

"""The columns of the live thresholds on a terminal: what the Watch page has in a row."""

from __future__ import annotations

from datetime import datetime

from calibrate.report.sentences.watching import live as sentences
from calibrate.report.tables.column import Column
from calibrate.workflow.watching.live import LiveThreshold


def columns(now: datetime) -> tuple[Column[LiveThreshold], ...]:
    """`now` is what "12 days ago" counts from."""
    return (
        Column("threshold", "Threshold", lambda row: row.name),
        Column("promised", "Promised", sentences.promised),
        Column(
            "known", "Known now", lambda row: f"{sentences.precision(row)}, {sentences.precision_from(row.estimate)}"
        ),
        Column("scores", "Scores", sentences.drift),
        Column("models", "Models seen", sentences.models),
        Column("checked", "Last checked", lambda row: sentences.checked(row, now)),
        Column("flags", "Flags", sentences.flags),
        Column("due", "Due", lambda row: sentences.ACTIONS[row.due] if row.due else "–"),
    )

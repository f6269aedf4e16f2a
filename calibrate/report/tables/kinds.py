"""What a detector finds of each kind of error: one row for each kind."""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.report.sentences.labelling.kinds import name
from calibrate.report.tables.column import Column, Form
from calibrate.stats.labels.by_kind import KindRecall


def columns(names: Mapping[str, str]) -> tuple[Column[KindRecall], ...]:
    """`names` are what labellers read, by key."""
    return (
        Column("kind", "Kind", lambda row: name(row, names)),
        Column("labels", "Labels", lambda row: row.labels, Form.COUNT, "Hallucinated answers of this kind."),
        Column("flagged", "Flagged", lambda row: row.flagged, Form.COUNT, "Of them, flagged at the threshold."),
        Column(
            "recall",
            "Recall",
            lambda row: row.recall,
            Form.SHARE_FIGURE,
            "Of this kind, the share that is flagged, weighted as the sample was drawn.",
        ),
    )

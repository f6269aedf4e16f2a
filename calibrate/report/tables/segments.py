"""Thresholds per segment beside one for all: one row for each segment."""

from __future__ import annotations

from calibrate.report.numbers import number
from calibrate.report.tables.column import Column, Form
from calibrate.sanitize import one_line
from calibrate.workflow.tuning.segments import SegmentRow

COMMON, FEW = "common", "common (few labels)"

COLUMNS: tuple[Column[SegmentRow], ...] = (
    Column("segment", "Segment", lambda row: one_line(row.segment, 60)),
    Column("n", "Labels", lambda row: row.n, Form.COUNT, "Definite labels of this segment."),
    Column("positives", "Hallucinated", lambda row: row.positives, Form.COUNT, "Of them, hallucinated."),
    Column(
        "precision",
        "Precision, one threshold",
        lambda row: row.precision,
        Form.SHARE_FIGURE,
        "In this segment, at the one threshold for all.",
    ),
    Column("recall", "Recall, one threshold", lambda row: row.recall, Form.SHARE_FIGURE, "At the same threshold."),
    Column(
        "threshold",
        "Own threshold",
        lambda row: number(row.own) if row.own is not None else COMMON if row.enough else FEW,
        help="Where its curve, drawn towards that of all segments, crosses the same probability as theirs.",
    ),
    Column(
        "own_precision",
        "Precision, own",
        lambda row: row.own_precision,
        Form.SHARE_FIGURE,
        "In this segment, by curves that were fitted without the label they flag.",
    ),
    Column("own_recall", "Recall, own", lambda row: row.own_recall, Form.SHARE_FIGURE, "In the same way."),
)

"""The columns of a comparison: one row for each curve."""

from __future__ import annotations

from calibrate.report.numbers import estimate
from calibrate.report.tables.column import Column, Form
from calibrate.sanitize import one_line
from calibrate.types import Interval
from calibrate.workflow.tuning.compare import Series


def _share(figure: Interval) -> str:
    return estimate(figure.value, figure.low, figure.high)


COLUMNS = (
    Column[Series]("name", "", lambda series: one_line(series.name, 60)),
    Column[Series]("auroc", "AUROC", lambda series: series.auroc, Form.FIGURE, places=3),
    Column[Series](
        "average_precision", "Average precision", lambda series: series.average_precision, Form.FIGURE,
        "To be read against the share that is hallucinated", places=3,
    ),
    Column[Series]("n", "Labels", lambda series: series.sweep.n, Form.COUNT),
    Column[Series]("positives", "Hallucinated", lambda series: series.sweep.positives, Form.COUNT),
    Column[Series](
        "prevalence", "Of traffic",
        lambda series: None if series.prevalence.value is None else _share(series.prevalence),
        help="The estimated share of the traffic that is hallucinated",
    ),
    Column[Series]("coverage", "Coverage", lambda series: series.sweep.coverage, Form.SHARE),
)  # fmt: skip

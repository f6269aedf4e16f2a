"""The columns of the scoreboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from calibrate.report.names import title_of
from calibrate.report.numbers import interval, limit
from calibrate.report.sentences.tuning.scoreboard import recognizes, why
from calibrate.report.tables.column import Column, Form
from calibrate.workflow.tuning.scoreboard import AtPoint, Line

T = TypeVar("T")


def _at_point(get: Callable[[AtPoint], T]) -> Callable[[Line], T | None]:
    """What a line's threshold has; None where there is none."""
    return lambda line: get(line.point) if line.point else None


DETECTOR = Column[Line]("detector", "detector", lambda line: line.name)
TITLE = Column[Line]("title", "Detector", lambda line: title_of(line.name), width=126)
SHOWN_NAME = Column[Line]("detector", "detector", lambda line: f"({line.name})" if line.baseline else line.name)
N = Column[Line]("n", "labels", lambda line: line.n, Form.COUNT)
POSITIVES = Column[Line]("positives", "hallucinated", lambda line: line.positives, Form.COUNT)
BASELINE = Column[Line]("baseline", "baseline", lambda line: line.baseline, Form.FLAG)
AUROC = Column[Line](
    "auroc", "AUROC", lambda line: line.auroc, Form.FIGURE,
    "The chance that a hallucinated trace scores worse than a clean one; 0.5 is chance", 55, 86,
)  # fmt: skip
WITHIN = Column[Line](
    "auroc_within_model", "In model", lambda line: line.within.auroc, Form.FIGURE,
    "AUROC among answers of one model in one operation: what is left where knowing the model does not help", 66, 96,
)  # fmt: skip
WITHIN_N = Column[Line]("n_within_model", "labels with a model", lambda line: line.within.n, Form.COUNT)
RECOGNIZES = Column[Line]("recognizes", "recognizes", lambda line: recognizes(line.within))
AVERAGE_PRECISION = Column[Line](
    "average_precision", "AP", lambda line: line.average_precision, Form.FIGURE,
    "Average precision: precision averaged over recall, to be read against the prevalence", 45, 74,
)  # fmt: skip
PRECISION = Column[Line](
    "precision", "Precision", _at_point(lambda point: point.precision), Form.SHARE_FIGURE,
    "Of the labels it flags there, the share that is hallucinated", 66, 96,
)  # fmt: skip
RECALL = Column[Line](
    "recall", "Recall", _at_point(lambda point: point.recall), Form.SHARE_FIGURE,
    "Of the hallucinations, the share it flags there; a trace without a score is missed", 52, 80,
)  # fmt: skip
RECALL_SETTLED = Column[Line](
    "recall_settled", "Settled",
    _at_point(lambda point: interval(point.settled.low, point.settled.high) if point.settled else None),
    help="What the recall becomes once the unsure and disputed labels are settled, whichever way", width=64,
)  # fmt: skip
SETTLED_LOW = Column[Line](
    "recall_settled_low", "settled from", _at_point(lambda point: point.settled.low if point.settled else None),
    Form.SHARE,
)  # fmt: skip
SETTLED_HIGH = Column[Line](
    "recall_settled_high", "settled to", _at_point(lambda point: point.settled.high if point.settled else None),
    Form.SHARE,
)  # fmt: skip
AT = Column[Line](
    "at", "At", _at_point(lambda point: limit(point.threshold, point.flag_when)), help="The threshold", width=64
)
CHOSEN = Column[Line](
    "chosen", "Chosen", _at_point(lambda point: point.chosen),
    help="saved: the operating point; here: by the default policy on these labels", width=60,
)  # fmt: skip
# In all digits that count: it is for reading back.
THRESHOLD = Column[Line]("threshold", "threshold", _at_point(lambda point: limit(point.threshold, point.flag_when, 6)))
POLICY = Column[Line]("policy", "policy", _at_point(lambda point: point.policy))
SAVED = Column[Line]("saved", "saved", _at_point(lambda point: point.saved), Form.FLAG)
FLAGGED = Column[Line]("flagged", "flagged", _at_point(lambda point: point.flagged), Form.COUNT)
SCORED = Column[Line]("scored", "Scored", lambda line: line.scored, Form.COUNT, "Labels with a score", 54)
NOT_RUN = Column[Line]("not_run", "Not run", lambda line: line.not_run, Form.COUNT, "Labels it was not run on", 54)
FITTED = Column[Line](
    "fitted", "Fitted it", lambda line: line.fitted, Form.COUNT, "Labels that fitted it, in none of its figures", 54
)  # fmt: skip
COVERAGE = Column[Line](
    "coverage", "Coverage", lambda line: line.coverage, Form.SHARE,
    "Share of traffic that it can score, where it was run", 62,
)  # fmt: skip
MILLISECONDS = Column[Line](
    "milliseconds", "ms", lambda line: line.spent.milliseconds, Form.DIGITS, "Median milliseconds a trace", 44
)
COST = Column[Line](
    "cost_per_1000", "$ / 1,000", lambda line: line.spent.cost_per_1000, Form.AMOUNT,
    "US dollars for 1,000 traces; none where the price is unknown", 62,
)  # fmt: skip
CALLS = Column[Line](
    "calls", "Calls", lambda line: line.spent.calls, Form.DIGITS, "Requests to a chat endpoint for each trace", 42
)
EXPLAINS = Column[Line](
    "explains", "Says why", lambda line: line.spent.explains, Form.FLAG,
    "Its scores come with evidence on the trace card", 62,
)  # fmt: skip
WHY = Column[Line]("why", "why", _at_point(why))

ON_PAGE = (
    TITLE, AUROC, WITHIN, PRECISION, RECALL, AT, CHOSEN, COVERAGE, COST,
)  # fmt: skip
ON_TERMINAL = (
    SHOWN_NAME, AUROC, WITHIN, AVERAGE_PRECISION, PRECISION, RECALL, RECALL_SETTLED, AT, CHOSEN, COVERAGE, SCORED,
    NOT_RUN, MILLISECONDS, COST, CALLS, EXPLAINS,
)  # fmt: skip
IN_FILES = (
    DETECTOR, BASELINE, N, SCORED, POSITIVES, NOT_RUN, FITTED, COVERAGE, AUROC, WITHIN, WITHIN_N, RECOGNIZES,
    AVERAGE_PRECISION, PRECISION, RECALL,
    SETTLED_LOW, SETTLED_HIGH, THRESHOLD,
    POLICY, SAVED, FLAGGED, MILLISECONDS, COST, CALLS, EXPLAINS, WHY,
)  # fmt: skip

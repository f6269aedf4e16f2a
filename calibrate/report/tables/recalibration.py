"""The columns of a recalibration: one row for each detector, before and after."""

from __future__ import annotations

from calibrate.report.names import title_of
from calibrate.report.numbers import estimate, limit, share
from calibrate.report.sentences.releasing.recalibration import stays
from calibrate.report.sentences.tuning.figures import saved_policy_in_words
from calibrate.report.tables.column import NOTHING, Column
from calibrate.sanitize import one_line
from calibrate.types import Interval
from calibrate.workflow.upgrade.recalibrate import Redone

SIDES = "On the same labels: the live threshold by the old scores, and the new one by the new scores (95% interval)"


def _flags_at(redone: Redone) -> str:
    return limit(redone.point.threshold, redone.point.flag_when) if redone.point else "stays"


def _precision(redone: Redone) -> str | None:
    before = redone.stood.precision if redone.stood else Interval(None)
    return _pair(before, redone.point.precision) if redone.point else None


def _recall(redone: Redone) -> str | None:
    before = redone.stood.recall if redone.stood else Interval(None)
    return _pair(before, redone.point.recall) if redone.point else None


def _pair(before: Interval, after: Interval) -> str:
    """Write a share before and after: "63% → 71% (58–81%)"."""
    now = NOTHING if after.value is None else estimate(after.value, after.low, after.high)
    return f"{NOTHING if before.value is None else share(before.value)} → {now}"


DETECTOR = Column[Redone]("detector", "Detector", lambda redone: redone.due.name)
TITLE = Column[Redone]("detector", "Detector", lambda redone: title_of(redone.due.name))
CHANGES = Column[Redone](
    "changes", "What changed", lambda redone: one_line(", ".join(redone.due.changes), 200) or "nothing", width=200
)
FLAGGED_AT = Column[Redone](
    "before", "Flagged at", lambda redone: redone.due.entry.limits, help="The live release's threshold"
)
POLICY = Column[Redone](
    "policy", "Policy", lambda redone: saved_policy_in_words((redone.point or redone.due.entry).policy)
)
FLAGS_AT = Column[Redone]("after", "Flags at", _flags_at)
PRECISION = Column[Redone]("precision", "Precision", _precision, help=SIDES)
RECALL = Column[Redone]("recall", "Recall", _recall, help=SIDES)
STRENGTH = Column[Redone]("strength", "Strength", lambda redone: redone.point.strength if redone.point else None)
SAYS = Column[Redone]("stays", "Says", lambda redone: one_line(stays(redone), 300) or None, width=400)

ON_PAGE = (TITLE, CHANGES, FLAGGED_AT, POLICY, FLAGS_AT, PRECISION, RECALL, STRENGTH, SAYS)
ON_TERMINAL = (DETECTOR, FLAGGED_AT, FLAGS_AT, POLICY, STRENGTH, PRECISION, RECALL)

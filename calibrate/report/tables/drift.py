"""The columns of a drift report: one row for each detector on each model's traffic."""

from __future__ import annotations

from collections.abc import Callable

from calibrate.report.names import title_of
from calibrate.report.numbers import UNKNOWN, count, number, share
from calibrate.report.sentences.watching.drift import STATES, line_verdict
from calibrate.report.tables.column import NOTHING, Column, Form
from calibrate.report.tables.models import name_of
from calibrate.stats.monitoring.drift import Shift, Side
from calibrate.workflow.watching.drift_report import DetectorDrift


def _write_sides(write: Callable[[Side], str]) -> Callable[[DetectorDrift], str | None]:
    """What both windows have: "0.61 → 0.53"; None where nothing was compared."""

    def both(line: DetectorDrift) -> str | None:
        if line.shift is None:
            return None
        texts = (write(side) for side in (line.shift.before, line.shift.now))
        return " → ".join(NOTHING if text == UNKNOWN else text for text in texts)

    return both


def _write_p_value(get: Callable[[Shift], float | None]) -> Callable[[DetectorDrift], float | None]:
    return lambda line: get(line.shift) if line.shift else None


ALONE = "each test alone, before correction"
DETECTOR = Column[DetectorDrift]("detector", "Detector", lambda line: line.detector)
TITLE = Column[DetectorDrift]("detector", "Detector", lambda line: title_of(line.detector))
MODEL = Column[DetectorDrift]("model", "Model", lambda line: name_of(line.model))
STATE = Column[DetectorDrift]("state", "Verdict", lambda line: STATES[line.state])
COMPARED = Column[DetectorDrift](
    "compared", "Compared", lambda line: f"{count(line.compared_before)} / {count(line.compared)}",
    help="Traces of the window before, and since the release",
)  # fmt: skip
MEDIAN = Column[DetectorDrift](
    "median", "Median", _write_sides(lambda side: number(side.median, 3)), help="Of the scores, in the detector's units"
)
FLAGGED = Column[DetectorDrift](
    "flagged", "Flagged", _write_sides(lambda side: share(side.flag_rate)), help="At the live threshold"
)
SCORED = Column[DetectorDrift](
    "scored", "Scored", _write_sides(lambda side: share(side.coverage)), help="Share of the traces that it could score"
)
P_SCORES = Column[DetectorDrift](
    "p_scores", "p scores", _write_p_value(lambda shift: shift.p_scores), Form.P_VALUE,
    f"Energy distance between the scores, permutation test; {ALONE}", 70,
)  # fmt: skip
P_FLAGS = Column[DetectorDrift](
    "p_flags", "p flags", _write_p_value(lambda shift: shift.p_flags), Form.P_VALUE, f"Share flagged; {ALONE}", 70
)
P_COVERAGE = Column[DetectorDrift](
    "p_coverage", "p scored", _write_p_value(lambda shift: shift.p_coverage), Form.P_VALUE,
    f"Share it could score; {ALONE}", 70,
)  # fmt: skip
SAYS = Column[DetectorDrift]("verdict", "Says", line_verdict, width=600)

ON_PAGE = (
    TITLE, MODEL, STATE, COMPARED, MEDIAN, FLAGGED, SCORED, P_SCORES, P_FLAGS, P_COVERAGE, SAYS,
)  # fmt: skip
ON_TERMINAL = (DETECTOR, MODEL, MEDIAN, FLAGGED, SCORED, COMPARED, STATE)

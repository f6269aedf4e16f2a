"""Score and decide in one call, for a program that waits for the verdict before it shows an answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from calibrate.runtime.alerts import Alerts
from calibrate.runtime.decision import Decision, decide
from calibrate.runtime.live import Live, current
from calibrate.runtime.scoring import Scorer
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Trace

log = logging.getLogger("touchstone")


class Guard:
    """Traces to decisions, in the caller's thread. Whatever a detector does, there is a decision: one that could not
    score does not flag, and `Decision.missing` names it. Give `alerts` to tell a webhook of what flagged."""

    def __init__(
        self,
        thresholds: ThresholdsFile | Live,
        *,
        detectors: Sequence[str] | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        """`detectors` (names) restricts those of the release to these: the others' scores are missing."""
        self._thresholds, self._alerts = thresholds, alerts
        self._scorer = Scorer(thresholds, detectors=detectors)

    def check(self, trace: Trace) -> Decision:
        """The decision on one answer."""
        return self.check_many([trace])[0]

    def check_many(self, traces: Sequence[Trace]) -> list[Decision]:
        """The decisions, in order, all by one release; detectors with a model are quicker on several at once."""
        try:
            decisions = [scored.decision for scored in self._scorer.score(traces)]
        except Exception:  # a guard must not take the program down that it guards
            log.exception("touchstone: scoring failed, so nothing is flagged")
            file = current(self._thresholds)
            decisions = [decide(file, {}) for _ in traces]
        if self._alerts is not None:
            for trace, decision in zip(traces, decisions, strict=True):
                self._alerts.offer(trace, decision)
        return decisions

"""Score and decide in one call, for a program that waits for the verdict before it shows an answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from calibrate.errors import BadInput
from calibrate.runtime.alerts import Alerts
from calibrate.runtime.decision import Decision, decide
from calibrate.runtime.given import kind_of
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
        """`detectors` (names) restricts those of the release to these: the others' scores are missing. Says in the log
        which detectors cannot score here, and why. Raises BadInput for a setting that cannot be."""
        if alerts is not None and not isinstance(alerts, Alerts):
            raise BadInput(f"alerts is {kind_of(alerts)}; give Alerts(url)")
        self._thresholds, self._alerts = thresholds, alerts
        self._scorer = Scorer(thresholds, detectors=detectors)
        self._scorer.prepare()
        self._said: set[type[Exception]] = set()

    def check(self, trace: Trace) -> Decision:
        """The decision on one answer."""
        return self.check_many([trace])[0]

    def check_many(self, traces: Sequence[Trace]) -> list[Decision]:
        """The decisions, in order, all by one release; detectors with a model are quicker on several at once."""
        decisions = self._survive(traces)
        if self._alerts is not None:
            for trace, decision in zip(traces, decisions, strict=True):
                self._alerts.offer(trace, decision)
        return decisions

    def _survive(self, traces: Sequence[Trace]) -> list[Decision]:
        """The decisions; where scoring raises, trace by trace, so that only the culprit passes unseen: a guard must not
        take the program down that it guards."""
        try:
            return [scored.decision for scored in self._scorer.score(traces)]
        except Exception as error:
            if len(traces) > 1:
                return [decision for trace in traces for decision in self._survive([trace])]
            if type(error) not in self._said:
                self._said.add(type(error))
                log.exception("touchstone: scoring failed, so nothing is flagged. This is said once")
            return [decide(current(self._thresholds), {}) for _ in traces]

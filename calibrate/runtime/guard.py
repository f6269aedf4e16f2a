"""Score and decide in one call, for a program that waits for the verdict before it shows an answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import zip_longest

from calibrate.errors import BadInput
from calibrate.runtime.alerts import Alerts
from calibrate.runtime.decision import Decision, OnMissing, decide
from calibrate.runtime.live import Live, current
from calibrate.runtime.scoring import PassedScores, Scorer
from calibrate.runtime.validation import check_number, describe_type
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Trace

log = logging.getLogger("touchstone")

DEADLINE = 2.0
"""Seconds that a check may take unless the program says otherwise."""


class Guard:
    """Turn traces into decisions.

    There is a decision in time whatever a detector does: one that cannot score, or not by the deadline, does not flag,
    and `Decision.missing` names it. A detector that never ends keeps a thread; after a few of those it is not begun
    again until they end, and its scores are missing at once.
    Where none can score an answer, the verdict is what `on_missing` says. The log says which detectors cannot score in
    this process, and why, and once that an answer came empty or could not be scored.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    detectors : sequence of str, optional
        Run only these detectors of the release. The others' scores are missing.
    alerts : Alerts, optional
        Report flagged answers to a webhook.
    on_missing : {"review", "accept", "reject"}
        The verdict on an answer of which nothing could be scored.
    deadline : float or None
        Seconds that a call of `check` or `check_many` may take, above 0. None waits for as long as the detectors take,
        in the caller's thread: for batches, or to load models before the first answer comes.

    Raises
    ------
    BadInput
        For an impossible setting. Once constructed, nothing here raises.
    """

    def __init__(
        self,
        thresholds: ThresholdsFile | Live,
        *,
        detectors: Sequence[str] | None = None,
        alerts: Alerts | None = None,
        on_missing: OnMissing = "review",
        deadline: float | None = DEADLINE,
    ) -> None:
        if deadline is not None:
            check_number("deadline", deadline, "pause")
        self._deadline = deadline
        if alerts is not None and not isinstance(alerts, Alerts):
            raise BadInput(f"alerts is {describe_type(alerts)}; give Alerts(url)")
        self._thresholds, self._alerts, self._on_missing = thresholds, alerts, on_missing
        self._scorer = Scorer(thresholds, detectors=detectors, on_missing=on_missing)
        self._scorer.prepare()
        self._reported: set[type[Exception]] = set()

    def check(self, trace: Trace, *, scores: PassedScores | None = None) -> Decision:
        """Decide on one answer.

        Parameters
        ----------
        trace : Trace
        scores : mapping of str to float, optional
            Scores that were computed elsewhere, by detector, in its own units: those of external detectors, and of any
            other that is not to be computed here. What is no finite number counts as missing.

        Returns
        -------
        Decision
        """
        return self.check_many([trace], scores=None if scores is None else [scores])[0]

    def check_many(
        self, traces: Sequence[Trace], *, scores: Sequence[PassedScores | None] | None = None
    ) -> list[Decision]:
        """Decide on several answers, all by one release. Quicker than one by one for detectors with a model.

        Parameters
        ----------
        traces : sequence of Trace
        scores : sequence of mapping of str to float, optional
            For each trace, as `check` takes them.

        Returns
        -------
        list of Decision
            One for each trace, in order.
        """
        decisions = self._decide_safely(traces, list(scores) if scores is not None else [None] * len(traces))
        if self._alerts is not None:
            for trace, decision in zip(traces, decisions, strict=True):
                self._alerts.offer(trace, decision)
        return decisions

    def _decide_safely(self, traces: Sequence[Trace], passed: Sequence[PassedScores | None]) -> list[Decision]:
        """Decide, and where scoring raises, trace by trace, so that only the culprit goes unchecked.

        A guard must not take down the program that it guards.
        """
        try:
            scored = self._scorer.score(traces, passed=passed, deadline=self._deadline)
            return [result.decision for result in scored]
        except Exception as error:
            if len(traces) > 1:
                pairs = zip_longest(traces, passed[: len(traces)])
                return [decision for trace, given in pairs for decision in self._decide_safely([trace], [given])]
            if type(error) not in self._reported:
                self._reported.add(type(error))
                log.exception("touchstone: scoring failed, so the answer is unscored. This is logged once")
            return [decide(current(self._thresholds), {}, on_missing=self._on_missing) for _ in traces]

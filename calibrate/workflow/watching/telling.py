"""Tell a webhook what `watch` flagged: from the store's outbox, in groups, in order, each flag at least once.

A flag enters the outbox in the transaction that keeps its decision, so a kill loses none. It leaves when the webhook
took the message; a kill between the two tells it again. A webhook that is down keeps everything, and is tried again
after ever longer pauses.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from calibrate import webhook
from calibrate.errors import TouchstoneError
from calibrate.runtime.alert_text import Alert, message
from calibrate.runtime.decision import Decision
from db import Store
from db.decisions import StoredDecision, Untold

GROUP_SECONDS = 30.0  # flags that come within this time of the first share a message
PER_MINUTE = 6  # messages in any 60 seconds
MOST = 1000  # flags in one message, which lists a few and counts the others
TIMEOUT = 5.0  # seconds that the webhook may be silent
LEASE = 2 * TIMEOUT  # seconds for which a watcher that died keeps the flags it was telling
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0  # seconds before another attempt; doubled every time


class Teller:
    """Posts what is in the outbox, from a thread of its own: no decision waits for the webhook.

    url          the webhook; it is a secret, which no problem repeats
    trace_url    the address of a trace, with {id}, {otel_trace} or {otel_span}
    on_problem   hears, in the thread, why flags could not be told; each reason once until another comes
    """

    def __init__(
        self,
        store: Store,
        url: str,
        *,
        now: Callable[[], datetime],
        trace_url: str | None = None,
        on_problem: Callable[[str], None] = lambda problem: None,
    ) -> None:
        self._store, self._url, self._trace_url = store, url, trace_url
        self._now, self._on_problem = now, on_problem
        self._changed = threading.Condition()
        self._woken, self._hurried, self._closed = True, False, False
        self._failures = 0
        self._messages: deque[float] = deque(maxlen=PER_MINUTE)
        self.problem: str | None = None
        self.told = 0
        self._thread = threading.Thread(target=self._run, name="touchstone-telling", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look into the outbox: something was put there."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Tell everything now, and stop. What the webhook does not take within so many seconds stays in the outbox."""
        with self._changed:
            self._hurried = self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            try:
                pause = self._tell_due()
            except TouchstoneError as error:  # the store cannot be read or written now
                pause = self._fail(str(error))
            except Exception as error:  # its text is not repeated: it may hold the URL
                pause = self._fail(type(error).__name__)
            with self._changed:
                if self._closed and not self._hurried:
                    return
                self._changed.wait_for(lambda: self._woken or self._hurried, pause)
                self._woken = False

    def _tell_due(self) -> float | None:
        """Tell what is due. Returns the seconds until more may be; None while the outbox is empty."""
        hurried, self._hurried = self._hurried, False
        while (pause := self._pause(hurried)) == 0:
            group = self._store.outbox.claim(MOST, now=self._now(), until=self._after(LEASE), early=hurried)
            if not group or not self._tell(group):
                hurried = False
        return pause

    def _pause(self, hurried: bool) -> float | None:
        first = self._store.outbox.first()
        if first is None:
            return None
        queued_at, due_at = first
        due = max(due_at, queued_at + timedelta(seconds=GROUP_SECONDS))
        free = self._messages[0] + 60 - time.monotonic() if len(self._messages) == PER_MINUTE else 0.0
        return max(0.0, free, 0.0 if hurried else (due - self._now()).total_seconds())

    def _tell(self, group: Sequence[Untold]) -> bool:
        keys = [untold.key for untold in group]
        self._messages.append(time.monotonic())
        alerts = [Alert(untold.trace_id, _decision_of(untold.decision), None) for untold in group]
        text = message(alerts, unreported=0, trace_url=self._trace_url)
        problem = webhook.post(self._url, text, timeout=TIMEOUT)
        if problem is None:
            self._store.outbox.mark_told(keys, now=self._now())
            self.told += len(keys)
            self.problem, self._failures = None, 0
            return True
        self._store.outbox.postpone(keys, error=problem, until=self._after(self._fail(problem)))
        return False

    def _fail(self, problem: str) -> float:
        """Report a problem that is new. Returns the seconds until the next attempt."""
        if problem != self.problem:
            self._on_problem(problem)
        self.problem = problem
        self._failures += 1
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10))

    def _after(self, seconds: float) -> datetime:
        return self._now() + timedelta(seconds=seconds)


def _decision_of(stored: StoredDecision) -> Decision:
    scored = tuple(name for name, value in stored.scores.items() if value is not None)
    missing = tuple(name for name, value in stored.scores.items() if value is None)
    verdict: Any = stored.verdict
    return Decision(stored.flags, stored.tier, verdict, stored.reasons, stored.version, scored, missing, ())

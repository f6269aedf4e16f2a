"""Send flags to a Slack-compatible webhook: grouped, rate-limited, from a thread of their own.

`offer` puts a few texts in a queue and returns; only the thread waits for the webhook. The webhook's URL is a secret,
as Slack's are: it appears in no log, message or error.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from calibrate import webhook
from calibrate.errors import BadInput
from calibrate.runtime.alert_text import ANSWER, Alert, message
from calibrate.runtime.decision import Decision
from calibrate.runtime.validation import check_number
from calibrate.types import Tier, Trace

log = logging.getLogger("touchstone")

AT_EXIT = 2.0
"""Seconds that the program's exit may wait for queued alerts."""

FLAGS = ("page", "signal")
"""The tiers that a flag can have."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Alerts of this process by outcome: offered = sent + failed + dropped + suppressed + waiting.

    The next message says how many alerts failed, were dropped or were suppressed before it.

    Attributes
    ----------
    sent : int
    failed : int
        The webhook did not accept them.
    dropped : int
        The queue was full, or closed.
    suppressed : int
        Beyond the messages allowed a minute.
    waiting : int
        In the queue, or being sent.
    """

    sent: int = 0
    failed: int = 0
    dropped: int = 0
    suppressed: int = 0
    waiting: int = 0


def check_trace_url(url: object) -> None:
    """Raise BadInput for a URL that has neither {id} nor {otel_trace} for a trace's id.

    Parameters
    ----------
    url : object
        What somebody passed as `trace_url`.
    """
    if not (isinstance(url, str) and ("{id}" in url or "{otel_trace}" in url)):
        raise BadInput(f"trace_url {url!r} has no {{id}} and no {{otel_trace}}: http://host/traces?trace={{id}}")


class Alerts:
    """Report flagged answers to a webhook.

    Parameters
    ----------
    url : str
        The webhook. It receives {"text": …}, the format of Slack and compatible services.
    tiers : sequence of {"page", "signal"}
        Decisions of these tiers are reported.
    per_minute : int
        Most messages in any 60 seconds, 1 or more.
    group_seconds : float
        Alerts that arrive within this many seconds of the first share a message. 0 or more.
    trace_url : str, optional
        Address where a trace can be seen, with {id} for its id: "http://host/traces?trace={id}". A backend of
        OpenTelemetry wants {otel_trace}, and {otel_span} where it shows one span: "http://jaeger/trace/{otel_trace}".
    include_answer : bool
        Whether the answer's text may leave the program.
    timeout : float
        Seconds that the webhook may be silent, above 0.
    max_queue : int
        Most alerts that may wait, 1 or more. Further ones are dropped and counted.

    Raises
    ------
    BadInput
        For an impossible setting. Once constructed, nothing here raises.
    """

    def __init__(
        self,
        url: str,
        *,
        tiers: Sequence[Tier] = ("page",),
        per_minute: int = 6,
        group_seconds: float = 30,
        trace_url: str | None = None,
        include_answer: bool = False,
        timeout: float = 5,
        max_queue: int = 1000,
    ) -> None:
        self._url = webhook.check_url(url)
        listed = isinstance(tiers, Collection) and not isinstance(tiers, str)
        if not listed or not tiers or not all(tier in FLAGS for tier in tiers):
            raise BadInput(f"tiers cannot be {tiers!r}; give a list of `page`, `signal` or both")
        if trace_url is not None:
            check_trace_url(trace_url)
        if not isinstance(include_answer, bool):  # a text "false" would let the answers out
            raise BadInput(f"include_answer cannot be {include_answer!r}; it is True or False")
        check_number("per_minute", per_minute, "count")
        check_number("max_queue", max_queue, "count")
        check_number("group_seconds", group_seconds, "wait")
        check_number("timeout", timeout, "pause")
        self._tiers = frozenset(tiers)
        self._per_minute, self._group_seconds, self._timeout = per_minute, group_seconds, timeout
        self._trace_url, self._include_answer, self._max_queue = trace_url, include_answer, max_queue
        self._closed = False
        self._reset()
        _alive.add(self)

    def _reset(self) -> None:
        """Start with an empty queue. The first alert starts the thread.

        A forked child calls this again: the parent sends what was queued before the fork.
        """
        self._changed = threading.Condition()
        self._queue: deque[Alert] = deque()
        self._since = 0.0  # when the first alert in the queue arrived
        self._sending = 0
        self._hurried = False
        self._counts = dict.fromkeys(("sent", "failed", "dropped", "suppressed"), 0)
        self._unreported = 0
        self._messages: deque[float] = deque(maxlen=self._per_minute)  # when the latest were sent
        self._problem: str | None = None
        self._thread: threading.Thread | None = None

    # ----------------------------------------------------------------------------------------- what programs call

    def offer(self, trace: Trace, decision: Decision, *, span: tuple[str, str] | None = None) -> None:
        """Queue an alert if the decision's tier is one of `tiers`. Never waits for the webhook, never raises.

        Parameters
        ----------
        trace : Trace
            The answer that was decided on.
        decision : Decision
            What `decide` or `Guard.check` returned for it.
        span : tuple of str, optional
            The OpenTelemetry ids of its trace and span, 32 and 16 hexadecimal digits. Without it they are read from
            the trace's id where that has the form "trace-span", as the span processor and its exports write it.
        """
        try:
            if decision.tier in self._tiers:
                answer = trace.answer[: 4 * ANSWER] if self._include_answer else None
                self._enqueue(Alert(str(trace.id), decision, answer, span))
        except Exception:
            log.exception("touchstone: an alert could not be queued")

    def flush(self, timeout: float = 10) -> bool:
        """Send everything in the queue now.

        Parameters
        ----------
        timeout : float
            Seconds to wait for it.

        Returns
        -------
        bool
            True if every alert was settled, sent or not, in time.
        """
        with self._changed:
            self._hurried = bool(self._queue)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._queue and not self._sending, timeout)

    def close(self, timeout: float = 10) -> None:
        """Flush, then stop. Alerts still waiting after `timeout` seconds, or offered later, count as dropped."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._settle("dropped", len(self._queue))
            self._queue.clear()
            self._changed.notify_all()
        _alive.discard(self)

    @property
    def counters(self) -> Counters:
        """The alerts offered so far, by outcome."""
        with self._changed:
            return Counters(**self._counts, waiting=len(self._queue) + self._sending)

    # ----------------------------------------------------------------------------------------------- the thread's

    def _enqueue(self, alert: Alert) -> None:
        with self._changed:
            if self._closed or len(self._queue) >= self._max_queue:
                self._settle("dropped", 1)
                return
            if not self._queue:
                self._since = time.monotonic()
            self._queue.append(alert)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="touchstone-alerts", daemon=True)
                thread.start()
                self._thread = thread
            elif len(self._queue) == 1:
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            group = self._next_group()
            if group is None:
                return
            outcome = "failed"
            try:
                outcome = self._deliver(group)
            except Exception as error:  # its text is not logged: it may hold the URL
                log.warning("touchstone: an alert could not be sent: %s", type(error).__name__)
            finally:
                with self._changed:
                    self._sending = 0
                    self._settle(outcome, len(group))
                    self._changed.notify_all()

    def _next_group(self) -> list[Alert] | None:
        """Wait for the next group of alerts. Returns None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._changed.wait_for(
                lambda: self._hurried or self._closed, max(0.0, self._since + self._group_seconds - time.monotonic())
            )
            if self._closed:
                return None
            group = list(self._queue)
            self._queue.clear()
            self._sending, self._hurried = len(group), False
            return group

    def _deliver(self, group: Sequence[Alert]) -> str:
        now = time.monotonic()
        if len(self._messages) == self._per_minute and now - self._messages[0] < 60:
            return "suppressed"
        self._messages.append(now)
        with self._changed:
            unreported = self._unreported
        problem = webhook.post(
            self._url, message(group, unreported=unreported, trace_url=self._trace_url), timeout=self._timeout
        )
        if problem is not None and problem != self._problem:
            log.warning("touchstone: the alert webhook did not take a message: %s", problem)
        self._problem = problem
        if problem is not None:
            return "failed"
        with self._changed:
            self._unreported -= unreported
        return "sent"

    def _settle(self, outcome: str, n: int) -> None:
        self._counts[outcome] += n
        self._unreported += n if outcome != "sent" else 0


_alive: weakref.WeakSet[Alerts] = weakref.WeakSet()


def _after_fork() -> None:
    for alerts in list(_alive):
        alerts._reset()


def _at_exit() -> None:
    until = time.monotonic() + AT_EXIT
    for alerts in list(_alive):
        alerts.close(max(0.0, until - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

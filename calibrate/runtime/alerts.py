"""Flags to a webhook, Slack-compatible: grouped, rate-limited, from a thread of their own.

Whoever offers an alert puts a few texts in a queue and goes on; what the webhook does is the thread's concern. The
webhook's address is a secret, as Slack's are: it is in no log, message or error.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from calibrate.errors import BadInput
from calibrate.runtime.alert_text import ANSWER, Alert, message
from calibrate.runtime.decision import Decision
from calibrate.runtime.given import check_number
from calibrate.types import Tier, Trace

log = logging.getLogger("touchstone")

AT_EXIT = 2.0
"""Seconds that the end of the program waits for what is queued."""

FLAGS = ("page", "signal")
"""The tiers of decisions that there is something to tell of."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What became of the alerts offered in this process: offered = sent + failed + dropped + suppressed + waiting.

    failed: the webhook did not take them. dropped: the queue was full, or closed. suppressed: beyond the messages a
    minute. The next message tells how many failed, were dropped or suppressed.
    """

    sent: int = 0
    failed: int = 0
    dropped: int = 0
    suppressed: int = 0
    waiting: int = 0


def check_trace_url(url: object) -> None:
    """Raises BadInput for one that has no place for a trace's id."""
    if not (isinstance(url, str) and "{id}" in url):
        raise BadInput(f"trace_url {url!r} has no {{id}}: http://host/traces?trace={{id}}")


class Alerts:
    """Tells a webhook what flagged.

    url            of the webhook: gets {"text": …}, which Slack and what is like it understand
    tiers          of decisions to tell
    per_minute     messages in any 60 seconds
    group_seconds  from the first alert on, what comes goes into one message
    trace_url      where a trace can be seen, with {id} for its id: "http://host/traces?trace={id}"
    include_answer whether the answer's text may leave the program
    timeout        seconds that the webhook may be silent
    max_queue      alerts that may wait

    Raises BadInput for a setting that cannot be; after that nothing here raises.
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
        self._url = _checked(url)
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
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        """A queue of its own for this process; its thread starts with the first alert. A forked child calls it again:
        what was queued is the parent's to tell."""
        self._changed = threading.Condition()
        self._queue: deque[Alert] = deque()
        self._since = 0.0  # when the first in the queue came
        self._sending = 0
        self._hurried = False
        self._counts = dict.fromkeys(("sent", "failed", "dropped", "suppressed"), 0)
        self._untold = 0
        self._messages: deque[float] = deque(maxlen=self._per_minute)  # when the latest were sent
        self._problem: str | None = None
        self._thread: threading.Thread | None = None

    # ----------------------------------------------------------------------------------------- what programs call

    def offer(self, trace: Trace, decision: Decision) -> None:
        """Put it in the queue where its tier is one of `tiers`. Never waits for the webhook, never raises."""
        try:
            if decision.tier in self._tiers:
                answer = trace.answer[: 4 * ANSWER] if self._include_answer else None
                self._put(Alert(str(trace.id), decision, answer))
        except Exception:
            log.exception("touchstone: an alert could not be queued")

    def flush(self, timeout: float = 10) -> bool:
        """Send what waits, now; True when all of it was settled, sent or not, within `timeout` seconds."""
        with self._changed:
            self._hurried = bool(self._queue)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._queue and not self._sending, timeout)

    def close(self, timeout: float = 10) -> None:
        """Flush, then stop. What waits then, or is offered later, counts as dropped."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._settle("dropped", len(self._queue))
            self._queue.clear()
            self._changed.notify_all()
        _alive.discard(self)

    @property
    def counters(self) -> Counters:
        """What became of what was offered so far."""
        with self._changed:
            return Counters(**self._counts, waiting=len(self._queue) + self._sending)

    # ----------------------------------------------------------------------------------------------- the thread's

    def _put(self, alert: Alert) -> None:
        with self._changed:
            if self._closed or len(self._queue) >= self._max_queue:
                self._settle("dropped", 1)
                return
            if not self._queue:
                self._since = time.monotonic()
            self._queue.append(alert)
            if self._thread is None:
                made = threading.Thread(target=self._work, name="touchstone-alerts", daemon=True)
                made.start()
                self._thread = made
            elif len(self._queue) == 1:
                self._changed.notify_all()

    def _work(self) -> None:
        while True:
            group = self._next()
            if group is None:
                return
            outcome = "failed"
            try:
                outcome = self._tell(group)
            except Exception as error:  # not its text, which may hold the address
                log.warning("touchstone: an alert could not be sent: %s", type(error).__name__)
            finally:
                with self._changed:
                    self._sending = 0
                    self._settle(outcome, len(group))
                    self._changed.notify_all()

    def _next(self) -> list[Alert] | None:
        """What came within `group_seconds` of the first; None when it is over."""
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

    def _tell(self, group: Sequence[Alert]) -> str:
        now = time.monotonic()
        if len(self._messages) == self._per_minute and now - self._messages[0] < 60:
            return "suppressed"
        self._messages.append(now)
        with self._changed:
            untold = self._untold
        problem = _post(self._url, message(group, untold=untold, trace_url=self._trace_url), self._timeout)
        if problem is not None and problem != self._problem:
            log.warning("touchstone: the alert webhook did not take a message: %s", problem)
        self._problem = problem
        if problem is not None:
            return "failed"
        with self._changed:
            self._untold -= untold
        return "sent"

    def _settle(self, outcome: str, n: int) -> None:
        self._counts[outcome] += n
        self._untold += n if outcome != "sent" else 0


def _checked(url: str) -> str:
    """The URL. What is wrong is told without it."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError):
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise BadInput("the webhook's URL is none: it begins with https:// and has no spaces (it is not shown here)")
    return url


def _post(url: str, document: dict[str, str], timeout: float) -> str | None:
    """None when it was taken, or why not, without the URL."""
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Here(HTTPRedirectHandler):
        """Alerts go where they were meant to, or nowhere."""

        def redirect_request(self, *_: Any) -> None:
            return None

    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "touchstone"}
    request = Request(url, json.dumps(document).encode(), headers)
    try:
        with build_opener(Here).open(request, timeout=timeout):
            return None
    except HTTPError as error:
        error.close()
        return f"it answers {error.code}"
    except OSError as error:
        reason = getattr(error, "reason", error)
        return getattr(reason, "strerror", None) or type(reason).__name__
    except Exception as error:
        return type(error).__name__


_alive: weakref.WeakSet[Alerts] = weakref.WeakSet()


def _after_fork() -> None:
    for alerts in list(_alive):
        alerts._begin()


def _at_exit() -> None:
    until = time.monotonic() + AT_EXIT
    for alerts in list(_alive):
        alerts.close(max(0.0, until - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

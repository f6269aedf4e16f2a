"""Send a share of the answers to the workbench's receiver, as they were scored, from a thread of their own."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import context as otel
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY  # there is no public name for it yet

from calibrate import webhook
from calibrate.errors import BadInput
from calibrate.ingest.spans.answers import Answer, row_of
from calibrate.ingest.spans.writing import document_of, span_of_record
from calibrate.redaction import Redactor, redactor_of
from calibrate.runtime.notices import log_once
from calibrate.runtime.otel.worker import OURS
from calibrate.runtime.tracelog.records import Record, Redact
from calibrate.runtime.tracelog.sender import Delivery, Sender
from calibrate.runtime.validation import check_number
from calibrate.settings import receiving

log = logging.getLogger("touchstone")

PATH = "/v1/traces"
LONGEST_WAIT = 300.0  # seconds, however long a receiver says
_TRY_AGAIN = (408, 429)  # besides what is 500 and more
_MOST_REPLY = 65_536


@dataclass(frozen=True, slots=True)
class HandOverCounts:
    """Decided answers of this process by outcome: all = sent + left_out + refused + failed + dropped + waiting.

    Attributes
    ----------
    sent : int
        The receiver has them.
    left_out : int
        Not in the share, or left out by the redaction.
    refused : int
        The receiver will not have them; the log says why.
    failed : int
        Could not be redacted or written.
    dropped : int
        The queue was full, or the process ended.
    waiting : int
        In the queue, or being sent.
    """

    sent: int = 0
    left_out: int = 0
    refused: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0


class HandOver(Sender[Answer]):
    """Posts answers to a receiver of OTLP over HTTP.

    Parameters
    ----------
    url : str
        The receiver's address, with or without /v1/traces.
    share : float
        The share of the traces that is sent, above 0 and up to 1. A trace's id decides, in every process alike, and a
        larger share holds all of a smaller one.
    redact : str or callable, optional
        What is replaced before anything leaves the program: names of kinds ("email,phone,card,key"), or a function that
        takes a record and returns another, or None to leave it out. It runs in the thread.
    max_queue, max_bytes : int
        Most answers that may wait, and the memory that they may take, about.
    every : float
        Seconds that an answer may wait for others to go with it.
    timeout : float
        Seconds that the receiver may be silent, above 0.

    Raises
    ------
    BadInput
        For an impossible setting. Once constructed, nothing here raises.
    """

    noun = "the hand-over"
    thread_name = "touchstone-hand-over"
    outcomes = ("sent", "left_out", "refused", "failed", "dropped")
    batch_bytes = 2 * 1024 * 1024

    def __init__(
        self,
        url: str,
        *,
        share: float = 0.1,
        redact: str | Redact | None = None,
        max_queue: int = 2048,
        max_bytes: int = 64 * 1024 * 1024,
        every: float = 1.0,
        timeout: float = 10.0,
    ) -> None:
        self._url = _address(url)
        check_number("share", share, "share")
        check_number("max_queue", max_queue, "count")
        if redact is not None and not callable(redact) and not isinstance(redact, str):
            raise BadInput(f"redact cannot be {redact!r}; give names like 'email,phone', or a function of a record")
        self._redactor: Redactor | None = redactor_of(redact) if isinstance(redact, str) else None
        self._hook: Redact | None = redact if callable(redact) else None
        self._share, self._timeout, self._refusal = share, timeout, ""
        self._headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        if token := receiving().token:
            self._headers["Authorization"] = f"Bearer {token}"
        super().__init__(max_queue=max_queue, max_bytes=max_bytes, batch=200, every=every)

    def offer(self, answer: Answer) -> bool:
        """Queue an answer if its trace is in the share. Returns whether it is in the queue. Never waits, never raises.

        Parameters
        ----------
        answer : Answer

        Returns
        -------
        bool
        """
        try:
            if not in_share(answer.trace_id, self._share):
                return self.settle("left_out")
            return self.put(answer, _size(answer))
        except Exception as error:
            log_once("unsent", f"{type(error).__name__} while it was queued")
            return self.settle("failed")

    @property
    def counts(self) -> HandOverCounts:
        """The answers offered so far, by outcome."""
        return HandOverCounts(**self.counts_with_waiting())

    @property
    def target(self) -> str:
        """Not its address: it may be a secret."""
        return "the workbench"

    def deliver(self, batch: Sequence[Answer]) -> Delivery:
        """Post a batch."""
        spans: list[dict[str, Any]] = []
        outcomes = dict.fromkeys(self.outcomes, 0)
        for answer in batch:
            try:
                record = self._record_of(answer)
                if record is None:
                    outcomes["left_out"] += 1
                else:
                    spans.append(span_of_record(record, trace_id=answer.trace_id, span_id=answer.span_id))
            except Exception as error:  # of the program's own function, or of a value; its text may quote the trace
                outcomes["failed"] += 1
                log_once("unsent", f"{type(error).__name__} while it was redacted and written")
        if not spans:
            return Delivery(outcomes)
        try:
            body = gzip.compress(document_of(spans), 5, mtime=0)
        except Exception as error:
            log_once("unsent", f"{type(error).__name__} while it was written")
            return Delivery(outcomes | {"failed": outcomes["failed"] + len(spans)})
        reply = webhook.send(self._url, body, self._headers, timeout=self._timeout, most=_MOST_REPLY)
        if reply.status is None or reply.status in _TRY_AGAIN or reply.status >= 500:
            return Delivery(outcomes | {"dropped": len(spans)}, reply.problem, _seconds(reply.retry_after))
        refused, why = (len(spans), reply.problem) if reply.problem is not None else _refused(reply.body)
        refused = min(refused, len(spans))
        if refused and why != self._refusal:
            self._refusal = str(why)
            log.warning("the workbench refused %d answers: %s", refused, why)
        return Delivery(outcomes | {"sent": len(spans) - refused, "refused": refused})

    def _record_of(self, answer: Answer) -> Record | None:
        """Write the answer as a record without what must not leave the program."""
        redactor = self._redactor
        if redactor is not None:
            evaluations = [
                each._replace(explanation=redactor.redact_text(each.explanation)) if each.explanation else each
                for each in answer.evaluations
            ]
            answer = replace(answer, trace=redactor.redact(answer.trace)[0], evaluations=tuple(evaluations))
        record: Record = row_of(answer, 1).fields
        return record if self._hook is None else self._hook(record)

    def _run(self) -> None:
        OURS.set(True)
        otel.attach(otel.set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        super()._run()


def in_share(trace_id: str, share: float) -> bool:
    """Tell whether a trace is in a share of all.

    Parameters
    ----------
    trace_id : str
        OpenTelemetry's, in hexadecimal: all answers of a trace are in, or none.
    share : float
        Above 0 and up to 1.

    Returns
    -------
    bool
    """
    return int.from_bytes(blake2b(trace_id.encode(), digest_size=8).digest()) < share * 2**64


def _address(url: str) -> str:
    parts = urlsplit(webhook.check_url(url, "the address in hand_over"))
    if parts.query or parts.fragment:
        raise BadInput("the address in hand_over is invalid: give it without ? and # (not shown here)")
    base = url.rstrip("/?#")
    return base if base.endswith(PATH) else base + PATH


def _size(answer: Answer) -> int:
    trace = answer.trace
    texts = (trace.answer, trace.question or "", trace.context or "", *trace.alternatives)
    tokens = sum([60 + 40 * len(token.top) for token in trace.tokens or ()])
    return 1000 + sum(map(len, texts)) + sum([100 + len(source.text) for source in trace.sources]) + tokens


def _seconds(retry_after: str | None) -> float:
    """Read Retry-After: seconds, or a date."""
    if retry_after is None:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT) if seconds == seconds else 0.0


def _refused(body: bytes) -> tuple[int, str | None]:
    """Read how many spans of an accepted request were refused, and why."""
    try:
        partial = json.loads(body)["partialSuccess"]
        return max(0, int(partial["rejectedSpans"])), str(partial.get("errorMessage"))[:300]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0, None

"""The spans of traces that are not complete yet, and where those came from whose traces are imported."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from calibrate.ingest.spans.record import SpanRecord

WAIT: Final = 5.0
"""Seconds from the last span of a trace whose root has ended: other processes send theirs as late as that."""
SILENCE: Final = 30.0
"""Seconds from the last span of a trace whose root has not come."""
MOST_OPEN: Final = 300.0
"""Seconds from the first span of a trace that never falls silent."""
MOST_BYTES: Final = 128 * 1024 * 1024
MOST_SETTLED: Final = 200_000
"""Traces of which it is remembered in which requests they came."""


@dataclass(slots=True)
class OpenTrace:
    """A trace that waits for spans.

    `requests` are the keys of the requests that its spans came in. `opened` and `touched` are seconds of the clock that
    requests are dated by. `again`: it was imported before.
    """

    trace_id: str
    opened: float
    touched: float
    spans: dict[str, SpanRecord] = field(default_factory=dict)
    requests: set[int] = field(default_factory=set)
    bytes: int = 0
    rooted: bool = False
    again: bool = False


class OpenTraces:
    """Collects spans by trace, and gives a trace out when it is complete, old, or memory runs short."""

    def __init__(
        self,
        *,
        wait: float = WAIT,
        silence: float = SILENCE,
        most_open: float = MOST_OPEN,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._wait, self._silence, self._most_open, self._most_bytes = wait, silence, most_open, most_bytes
        self._traces: OrderedDict[str, OpenTrace] = OrderedDict()  # first the one that has been silent longest
        self._pending: Counter[int] = Counter()  # request → its traces that are open or given out
        self._settled: OrderedDict[str, tuple[int, ...]] = OrderedDict()  # trace → requests
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._traces)

    def add(self, span: SpanRecord, *, request: int, size: int, now: float) -> tuple[int, ...]:
        """Add a span. Returns the requests that an imported trace came in which it opens again: add their spans too."""
        earlier: tuple[int, ...] = ()
        trace = self._traces.get(span.trace_id)
        if trace is None:
            earlier = self._settled.pop(span.trace_id, ())
            trace = self._traces[span.trace_id] = OpenTrace(span.trace_id, now, now, again=bool(earlier))
        self._put(trace, span, request, size)
        trace.touched = max(now, trace.touched)
        self._traces.move_to_end(span.trace_id)
        return earlier

    def restore(self, span: SpanRecord, *, request: int, size: int) -> None:
        """Add a span that came before, to a trace that was opened again."""
        trace = self._traces.get(span.trace_id)
        if trace is not None and span.span_id not in trace.spans:
            self._put(trace, span, request, size)

    def remember(self, trace_id: str, request: int) -> None:
        """Note that a trace is imported which had spans in this request."""
        requests = self._settled.pop(trace_id, ())
        self._settled[trace_id] = requests if request in requests else (*requests, request)
        while len(self._settled) > MOST_SETTLED:
            self._settled.popitem(last=False)

    def ready(self, now: float) -> Iterator[OpenTrace]:
        """Remove and yield the traces that wait no longer. `settle` them when they are imported."""
        for trace in list(self._traces.values()):
            silent = now - trace.touched
            complete = silent >= (self._wait if trace.rooted else self._silence)
            if complete or now - trace.opened >= self._most_open or self.bytes > self._most_bytes:
                yield self._remove(trace)

    def settle(self, traces: Iterable[OpenTrace]) -> None:
        """Note that these are imported."""
        for trace in traces:
            for request in sorted(trace.requests):
                self._pending[request] -= 1
                if not self._pending[request]:
                    del self._pending[request]
                self.remember(trace.trace_id, request)

    def oldest_request(self) -> int | None:
        """The first request that has a trace which is not imported. None if all are."""
        return min(self._pending, default=None)

    def _put(self, trace: OpenTrace, span: SpanRecord, request: int, size: int) -> None:
        if request not in trace.requests:
            trace.requests.add(request)
            self._pending[request] += 1
        if span.span_id not in trace.spans:
            trace.bytes += size
            self.bytes += size
        trace.spans[span.span_id] = span
        trace.rooted |= span.is_root

    def _remove(self, trace: OpenTrace) -> OpenTrace:
        del self._traces[trace.trace_id]
        self.bytes -= trace.bytes
        return trace

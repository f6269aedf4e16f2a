"""When a trace that waits for spans is given out, and which requests are imported to the end."""

from __future__ import annotations

from calibrate.ingest.spans.record import SpanRecord
from calibrate.receiving.open_traces import OpenTraces


def add(traces: OpenTraces, trace: str, span: str, now: float, *, parent: str | None = "p", request: int = 1) -> object:
    return traces.add(SpanRecord(trace, span, parent), request=request, size=10, now=now)


def ready(traces: OpenTraces, now: float) -> dict[str, set[str]]:
    given = list(traces.ready(now))
    traces.settle(given)
    return {trace.trace_id: set(trace.spans) for trace in given}


def test_a_trace_is_given_out_when_it_is_silent() -> None:
    traces = OpenTraces(wait=5, silence=30, most_open=100)
    add(traces, "rooted", "a", 0)
    add(traces, "rooted", "root", 1, parent=None)
    add(traces, "rootless", "a", 0)
    assert ready(traces, 5.9) == {}
    add(traces, "rooted", "b", 4)
    assert ready(traces, 8.9) == {}
    assert ready(traces, 9) == {"rooted": {"a", "root", "b"}}
    for now in range(10, 100, 10):
        add(traces, "chatty", str(now), now)
        add(traces, "rootless", str(now), now) if now < 30 else None
        assert ready(traces, now) == ({"rootless": {"a", "10", "20"}} if now == 50 else {})
    assert len(ready(traces, 110)["chatty"]) == 9
    assert (len(traces), traces.bytes) == (0, 0)


def test_memory_goes_before_completeness_and_the_most_silent_goes_first() -> None:
    traces = OpenTraces(most_bytes=25)
    add(traces, "one", "a", 0)
    add(traces, "two", "a", 1)
    add(traces, "one", "b", 2)
    assert ready(traces, 2) == {"two": {"a"}}
    assert traces.bytes == 20


def test_a_request_is_done_when_all_its_traces_are_imported() -> None:
    traces = OpenTraces(wait=5, silence=5)
    add(traces, "one", "a", 0, request=1)
    add(traces, "two", "a", 0, request=1)
    add(traces, "two", "b", 3, request=2)
    assert traces.oldest_request() == 1
    [one] = traces.ready(5)
    assert traces.oldest_request() == 1  # given out, and not imported yet
    traces.settle([one])
    assert traces.oldest_request() == 1
    ready(traces, 8)
    assert traces.oldest_request() is None


def test_a_late_span_asks_for_the_requests_of_its_trace() -> None:
    traces = OpenTraces(wait=5, silence=5)
    add(traces, "one", "a", 0, request=1)
    add(traces, "one", "b", 0, request=2)
    ready(traces, 5)
    assert add(traces, "one", "c", 6, request=3) == (1, 2)
    traces.restore(SpanRecord("one", "a", "p"), request=1, size=10)
    traces.restore(SpanRecord("gone", "a", "p"), request=1, size=10)
    assert add(traces, "one", "d", 6, request=3) == ()
    assert ready(traces, 11) == {"one": {"a", "c", "d"}}

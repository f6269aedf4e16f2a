"""Spans by the conventions, made by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from calibrate.ingest.spans import reader as reading
from calibrate.ingest.spans.answers import Answer
from calibrate.ingest.spans.content import SpanContent
from calibrate.ingest.spans.dialects import DIALECTS
from calibrate.ingest.spans.gather import Gather
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import SpanEvent, SpanRecord
from calibrate.types import Trace

TRUE = "Joseph Priestley discovered oxygen in 1774."
TRACE = "0af7651916cd43dd8448eb211c80319c"
BEGINNING = 1_795_000_000_000_000_000  # in November 2026
_numbers = itertools.count(1)


def message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}])


def chat(answer: str = TRUE, question: str = "Who discovered oxygen?", **more: Any) -> dict[str, Any]:
    """Attributes of an LLM span by the OpenTelemetry conventions."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "m-1",
        "gen_ai.input.messages": message("user", question),
        "gen_ai.output.messages": message("assistant", answer),
    } | more


def retrieval(*texts: str, **more: Any) -> dict[str, Any]:
    """Attributes of a retriever's span by the OpenTelemetry conventions."""
    documents = [{"id": f"d{i}", "score": 0.9 - i / 10, "content": text} for i, text in enumerate(texts)]
    return {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": json.dumps(documents)} | more


def span(
    attributes: Mapping[str, Any],
    events: Sequence[tuple[str, Mapping[str, Any]]] = (),
    *,
    trace_id: str = TRACE,
    parent: str | None = "00f067aa0ba902b7",
    started: int | None = None,
    ended: int | None = None,
    scope: str = "program",
) -> SpanRecord:
    """A span that begins after those made before it and has ended when the next begins."""
    number = next(_numbers)
    begun = BEGINNING + number * 1000 if started is None else started
    return SpanRecord(
        trace_id=trace_id,
        span_id=f"{number:016x}",
        parent_id=parent,
        name="s",
        scope=scope,
        started=begun,
        ended=begun + 500 if ended is None else ended,
        attributes=attributes,
        events=tuple(SpanEvent(name, values) for name, values in events),
    )


def answer_of(*spans: SpanRecord, reader: Reader | None = None) -> Answer:
    """The one answer of spans that come one after another."""
    reader, gather = reader or Reader(), Gather(seconds=60, most=100)
    answers = []
    for each in spans:
        content = reader.read(each)
        answer = reader.holds(each) == "answer" and bool(content.answers)
        answers += gather.add(each, content, answer=answer, now=0.0)
    (answer,) = answers + gather.all()
    return answer


def trace_of(*spans: SpanRecord, reader: Reader | None = None) -> Trace:
    return answer_of(*spans, reader=reader).trace


@contextmanager
def every_convention() -> Iterator[None]:
    """Let readers ask every convention of every span, and fill in what each says the long way."""
    everyone, empty = (
        patch.object(reading, "dialects_of", lambda names: DIALECTS),
        patch.object(reading, "SILENT", SpanContent()),
    )
    with everyone, empty:
        yield

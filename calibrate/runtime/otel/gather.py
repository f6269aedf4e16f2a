"""Join the spans of one trace: a retriever's span has the sources, the LLM's span the answer.

An answer is ready when the root span of its trace (within this process) has ended, because its siblings have ended by
then too. If the root never ends, the answer is ready once no span of the trace has ended for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext

from calibrate.runtime.otel.nesting import Piece, join_nested
from calibrate.runtime.otel.spans import Document, SpanContent, trace_id_of
from calibrate.types import Source, Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class EndedSpan(NamedTuple):
    """An ended span that has an answer or sources, or is the root of its trace."""

    span: ReadableSpan
    answer: bool
    root: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One LLM answer.

    Attributes
    ----------
    trace : Trace
        The answer with everything that the spans of its trace say about it.
    context : SpanContext
        Of the LLM span.
    response_id : str or None
        The model's own id of the answer.
    nested : int
        Further spans of the trace that have this same answer.
    """

    trace: Trace
    context: SpanContext
    response_id: str | None = None
    nested: int = 0


@dataclass(slots=True)
class _Open:
    touched: float
    pieces: list[Piece] = field(default_factory=list)
    answers: list[Piece] = field(default_factory=list)
    rooted: bool = False


class Gather:
    """The spans of traces that are not complete yet.

    Holds at most `most` spans, and each trace for at most `seconds` after its last span. `now` is any clock in seconds.
    """

    def __init__(self, *, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._open: OrderedDict[int, _Open] = OrderedDict()  # first the trace that has been silent longest
        self._span_count = 0
        self.answers = 0

    def add(self, ended: EndedSpan, content: SpanContent, *, now: float) -> list[Answer]:
        """Add a span. Returns the answers that are ready because of it."""
        context = ended.span.get_span_context() or INVALID_SPAN_CONTEXT
        piece = Piece.of(ended.span, content)
        open_trace = self._open.get(context.trace_id)
        if open_trace is None:
            if not (ended.answer or content.documents):
                return []  # the root of a trace without a model in it
            open_trace = self._open[context.trace_id] = _Open(now)
        open_trace.touched = now
        self._open.move_to_end(context.trace_id)
        open_trace.pieces.append(piece)
        self._span_count += 1
        open_trace.rooted |= ended.root
        if ended.answer:
            open_trace.answers.append(piece)
            self.answers += 1
        # A streamed answer can outlast its root span: then the sources wait for it.
        ready = self._close(context.trace_id) if open_trace.rooted and open_trace.answers else []
        while self._span_count > self._most:
            ready += self._close(next(iter(self._open)))
        return ready

    def overdue(self, *, now: float) -> list[Answer]:
        """Remove and return the answers of traces that have been silent for too long."""
        ready: list[Answer] = []
        while self._open and now - next(iter(self._open.values())).touched >= self._seconds:
            ready += self._close(next(iter(self._open)))
        return ready

    def all(self) -> list[Answer]:
        """Remove and return every answer, ready or not."""
        return [answer for trace_id in list(self._open) for answer in self._close(trace_id)]

    def wait(self, *, now: float) -> float | None:
        """Seconds until a trace is overdue; None without a trace."""
        first = next(iter(self._open.values()), None)
        return None if first is None else max(0.0, first.touched + self._seconds - now)

    def _close(self, trace_id: int) -> list[Answer]:
        closed = self._open.pop(trace_id)
        self._span_count -= len(closed.pieces)
        self.answers -= len(closed.answers)
        return [
            Answer(_build_trace(piece, closed.pieces), piece.context, piece.content.response_id, others)
            for piece, others in join_nested(closed.answers)
        ]


def _build_trace(piece: Piece, pieces: Sequence[Piece]) -> Trace:
    """Build the answer's trace. Only spans that began before the LLM's span contribute sources."""
    content = piece.content
    before = [earlier.content for earlier in pieces if earlier.started <= piece.started]
    reranked = [earlier for earlier in before if earlier.reranked]
    documents = content.documents or [document for earlier in reranked or before for document in earlier.documents]
    attributes = {key: value for earlier in before for key, value in earlier.attributes.items()} | dict(
        content.attributes
    )
    return Trace(
        id=content.trace_id or trace_id_of(piece.context),
        answer=content.answers[0] if content.answers else "",
        question=_choose_question(content, before),
        context=content.context or next((earlier.context for earlier in before if earlier.context), None),
        sources=_number_sources(documents),
        tokens=content.tokens,
        alternatives=content.answers[1:],
        schema=content.schema,
        timestamp=_to_datetime(piece.started),
        model=content.model,
        operation=content.operation,
        attributes=attributes,
    )


def _to_datetime(nanoseconds: int) -> datetime | None:
    """Convert nanoseconds of the epoch. None beyond the calendar: a program may give its spans any time."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _choose_question(content: SpanContent, before: Iterable[SpanContent]) -> str | None:
    """Choose the retriever's query if the prompt is a template around it, else the prompt."""
    if content.question is None:
        return next((earlier.question for earlier in before if earlier.question), None)
    queries = (earlier.query for earlier in before if earlier.query and earlier.query in content.question)
    return next(queries, content.question)


def _number_sources(documents: Iterable[Document]) -> tuple[Source, ...]:
    """Number the sources by their own numbers if all are distinct, else from 1 in order, each text once.

    Prompts list retrieved passages in that order, so answers cite them by it.
    """
    distinct = list({(document.number, document.id, document.text): document for document in documents}.values())
    numbers = [document.number or str(place) for place, document in enumerate(distinct, start=1)]
    if len(set(numbers)) < len(numbers):
        numbers = [str(place) for place in range(1, len(distinct) + 1)]
    return tuple(
        Source(number, document.text, document.id, document.score)
        for number, document in zip(numbers, distinct, strict=True)
    )

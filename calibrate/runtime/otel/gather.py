"""Puts the pieces of one trace together: a retriever's span has the sources, the LLM's span the answer.

An answer is ready when the root span of its trace (within this process) has ended: by then its siblings have too. Where
that never comes it is ready once nothing more has been heard of the trace for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext

from calibrate.runtime.otel.spans import Document, Said, trace_id_of
from calibrate.types import Source, Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class Ended(NamedTuple):
    """A span that ended and is of interest: it has an answer, or sources, or is the root of its trace."""

    span: ReadableSpan
    answer: bool
    root: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One LLM answer with what its trace knew, and the LLM span's place in it."""

    trace: Trace
    context: SpanContext


class Piece(NamedTuple):
    said: Said
    context: SpanContext
    started: int  # nanoseconds of the epoch


@dataclass(slots=True)
class _Open:
    touched: float
    pieces: list[Piece] = field(default_factory=list)
    answers: list[Piece] = field(default_factory=list)
    rooted: bool = False


class Gather:
    """At most `most` spans are held, each trace for `seconds` after its last span. `now` is any clock in seconds."""

    def __init__(self, *, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._open: OrderedDict[int, _Open] = OrderedDict()  # the trace that was silent longest comes first
        self._held = 0
        self.answers = 0

    def add(self, ended: Ended, said: Said, *, now: float) -> list[Answer]:
        """Takes the span in; the answers that are ready because of it."""
        context = ended.span.get_span_context() or INVALID_SPAN_CONTEXT
        piece = Piece(said, context, ended.span.start_time or 0)
        known = self._open.get(context.trace_id)
        if known is None:
            if not (ended.answer or said.documents):
                return []  # the root of a trace without a model in it
            known = self._open[context.trace_id] = _Open(now)
        known.touched = now
        self._open.move_to_end(context.trace_id)
        known.pieces.append(piece)
        self._held += 1
        known.rooted |= ended.root
        if ended.answer:
            known.answers.append(piece)
            self.answers += 1
        # A streamed answer can outlast its root: the sources then stay until it comes.
        ready = self._close(context.trace_id) if known.rooted and known.answers else []
        while self._held > self._most:
            ready += self._close(next(iter(self._open)))
        return ready

    def overdue(self, *, now: float) -> list[Answer]:
        """The answers of the traces that nothing was heard of for long."""
        ready: list[Answer] = []
        while self._open and now - next(iter(self._open.values())).touched >= self._seconds:
            ready += self._close(next(iter(self._open)))
        return ready

    def all(self) -> list[Answer]:
        """Every answer, ready or not; nothing is held afterwards."""
        return [answer for trace_id in list(self._open) for answer in self._close(trace_id)]

    def wait(self, *, now: float) -> float | None:
        """Seconds until a trace is overdue; None when none is held."""
        first = next(iter(self._open.values()), None)
        return None if first is None else max(0.0, first.touched + self._seconds - now)

    def _close(self, trace_id: int) -> list[Answer]:
        closed = self._open.pop(trace_id)
        self._held -= len(closed.pieces)
        self.answers -= len(closed.answers)
        return [Answer(_trace(piece, closed.pieces), piece.context) for piece in closed.answers]


def _trace(piece: Piece, pieces: Sequence[Piece]) -> Trace:
    """The answer with the sources of the spans that began before the model was asked."""
    said = piece.said
    before = [one.said for one in pieces if one.started <= piece.started]
    reranked = [one for one in before if one.reranked]
    found = said.documents or [document for one in reranked or before for document in one.documents]
    attributes = {key: value for one in before for key, value in one.attributes.items()} | dict(said.attributes)
    return Trace(
        id=said.trace_id or trace_id_of(piece.context),
        answer=said.answers[0] if said.answers else "",
        question=_question(said, before),
        context=said.context or next((one.context for one in before if one.context), None),
        sources=_numbered(found),
        tokens=said.tokens,
        alternatives=said.answers[1:],
        schema=said.schema,
        timestamp=_when(piece.started),
        model=said.model,
        operation=said.operation,
        attributes=attributes,
    )


def _when(nanoseconds: int) -> datetime | None:
    """None for what no calendar has: a program may give its spans any time."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _question(said: Said, before: Iterable[Said]) -> str | None:
    """What the retriever was asked, where the prompt is a template around it; else what the model was asked."""
    if said.question is None:
        return next((one.question for one in before if one.question), None)
    asked = (one.query for one in before if one.query and one.query in said.question)
    return next(asked, said.question)


def _numbered(documents: Iterable[Document]) -> tuple[Source, ...]:
    """By their own numbers; else, or where these are not distinct, numbered from 1 in the order they came in, each text
    once: that is how a prompt lists them."""
    once = list({(document.number, document.id, document.text): document for document in documents}.values())
    numbers = [document.number or str(place) for place, document in enumerate(once, start=1)]
    if len(set(numbers)) < len(numbers):
        numbers = [str(place) for place in range(1, len(once) + 1)]
    return tuple(
        Source(number, document.text, document.id, document.score)
        for number, document in zip(numbers, once, strict=True)
    )

"""One answer where two instrumentors trace one call of a model: the span of each carries it, one within the other.

The inner span wins, because it is nearest to the model and began last, after all that was retrieved; what it lacks is
taken from the outer one. A span to which the program itself gave the answer wins over both: it says what was shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext

from calibrate.runtime.otel.spans import SpanContent

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

MOST_COMPARED = 32  # answers of one text in one trace that a further one is compared with


class Piece(NamedTuple):
    """What is kept of a span. Times are nanoseconds of the epoch, `parent` is a span id, 0 for none."""

    content: SpanContent
    context: SpanContext
    started: int
    ended: int
    parent: int
    scope: str

    @classmethod
    def of(cls, span: ReadableSpan, content: SpanContent) -> Piece:
        """Keep what is needed of an ended span."""
        context, scope = span.get_span_context() or INVALID_SPAN_CONTEXT, span.instrumentation_scope
        started = span.start_time or 0
        return cls(
            content,
            context,
            started,
            span.end_time or started,
            span.parent.span_id if span.parent is not None else 0,
            scope.name if scope is not None else "",
        )


def join_nested(answers: Sequence[Piece]) -> list[tuple[Piece, int]]:
    """Join the spans of one trace that carry the same answer of one call.

    Parameters
    ----------
    answers : sequence of Piece
        The spans of one trace that hold an answer.

    Returns
    -------
    list of (Piece, int)
        One for each answer, in order of their beginning, with the number of spans that were joined to it.
    """
    by_text: defaultdict[str, list[list[Piece]]] = defaultdict(list)
    groups = []
    for piece in sorted(answers, key=lambda piece: (piece.started, -piece.ended)):
        text = " ".join(piece.content.answers[0].split()) if piece.content.answers else ""
        rivals = by_text[text][-MOST_COMPARED:] if text else []
        group = next((rival for rival in rivals if any(_is_within(piece, outer) for outer in rival)), None)
        if group is None:
            group = []
            groups.append(group)
            by_text[text].append(group)
        group.append(piece)
    return [(_join(group), len(group) - 1) for group in groups]


def _is_within(inner: Piece, outer: Piece) -> bool:
    """Tell whether two spans with the same text are one call, `inner` being the one that began later.

    By the model's id of the answer where both have one; else by descent, or where two instrumentors do not know of each
    other, by time. One instrumentor's spans of the same time are calls made at once.
    """
    ids = inner.content.response_id, outer.content.response_id
    if None not in ids:
        return ids[0] == ids[1]
    is_child = inner.parent == outer.context.span_id
    return is_child or (inner.scope != outer.scope and outer.started <= inner.started and inner.ended <= outer.ended)


def _join(group: Sequence[Piece]) -> Piece:
    if len(group) == 1:
        return group[0]
    winner = next((piece for piece in group if piece.content.declared), group[-1])
    content = _fill(winner.content, (piece.content for piece in reversed(group) if piece is not winner))
    return winner._replace(content=content, started=group[-1].started)


def _fill(content: SpanContent, others: Iterable[SpanContent]) -> SpanContent:
    """Take what the span does not say from the others."""
    for other in others:
        content = replace(
            content,
            trace_id=content.trace_id or other.trace_id,
            question=content.question or other.question,
            answers=content.answers if len(content.answers) >= len(other.answers) else other.answers,
            context=content.context or other.context,
            documents=content.documents or other.documents,
            tokens=content.tokens or other.tokens,
            schema=other.schema if content.schema is None else content.schema,
            model=content.model or other.model,
            operation=content.operation or other.operation,
            attributes={**other.attributes, **content.attributes},
            response_id=content.response_id or other.response_id,
        )
    return content

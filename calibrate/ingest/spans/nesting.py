"""One answer where two instrumentors trace one call of a model: the span of each carries it, one within the other.

The inner span wins, because it is nearest to the model and began last, after all that was retrieved; what it lacks is
taken from the outer one. A span to which the program itself gave the answer wins over both: it says what was shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from calibrate.ingest.spans.content import SpanContent, fill
from calibrate.ingest.spans.record import SpanRecord

MOST_COMPARED = 32  # answers of one text in one trace that a further one is compared with


class Piece(NamedTuple):
    """What is kept of a span. Times are nanoseconds of the epoch. `answer`: it holds one. `origin`: whatever
    the caller gave with it."""

    content: SpanContent
    trace_id: str
    span_id: str
    started: int
    ended: int
    parent: str | None
    scope: str
    answer: bool
    origin: object = None

    @classmethod
    def of(cls, span: SpanRecord, content: SpanContent, *, answer: bool, origin: object = None) -> Piece:
        """Keep what is needed of an ended span."""
        ended = span.ended or span.started
        ids = span.trace_id, span.span_id
        return cls(content, *ids, span.started, ended, span.parent_id, span.scope, answer, origin)


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
    is_child = inner.parent == outer.span_id
    return is_child or (inner.scope != outer.scope and outer.started <= inner.started and inner.ended <= outer.ended)


def _join(group: Sequence[Piece]) -> Piece:
    if len(group) == 1:
        return group[0]
    winner = next((piece for piece in group if piece.content.declared), group[-1])
    content = fill(winner.content, [piece.content for piece in reversed(group) if piece is not winner])
    return winner._replace(content=content, started=group[-1].started)

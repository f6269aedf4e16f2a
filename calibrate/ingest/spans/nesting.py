"""One answer where two instrumentors trace one call of a model: the span of each carries it, one within the other.

The inner span wins, because it is nearest to the model and began last, after all that was retrieved; what it lacks is
taken from the outer one. A span to which the program itself gave the answer wins over both: it says what was shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from calibrate.ingest.spans.content import SpanContent, fill
from calibrate.ingest.spans.record import SpanRecord

MOST_COMPARED = 32  # calls of one text in one trace that a further one is compared with by time


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
    by_text: defaultdict[str, list[Piece]] = defaultdict(list)
    for piece in sorted(answers, key=_began):
        text = " ".join(piece.content.answers[0].split()) if piece.content.answers else ""
        by_text[text].append(piece)
    groups = [[piece] for piece in by_text.pop("", ())]
    for pieces in by_text.values():
        groups += _join_by_time(_join_by_name(pieces))
    return [(_join(group), len(group) - 1) for group in sorted(groups, key=lambda group: _began(group[0]))]


def _join_by_name(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Group spans with the same text by the model's id of the answer, and a child with its parent. Two ids are two
    calls."""
    groups: list[list[Piece]] = []
    by_response: dict[str, list[Piece]] = {}
    by_span: dict[str, list[Piece]] = {}
    for piece in pieces:
        named = piece.content.response_id
        group = by_response.get(named) if named else None
        if group is None and piece.parent is not None:
            above = by_span.get(piece.parent)
            group = above if above is not None and _may_be_one(above, [piece]) else None
        if group is None:
            group = []
            groups.append(group)
        group.append(piece)
        by_span[piece.span_id] = group
        if named:
            by_response[named] = group
    yield from groups


def _join_by_time(groups: Iterator[list[Piece]]) -> list[list[Piece]]:
    """Join groups where two instrumentors do not know of each other: one's call lies within the other's.

    One instrumentor's spans of the same time are calls made at once. Where several calls of the other fit, that with
    the same question is taken.
    """
    joined: list[list[Piece]] = []
    for group in groups:
        fitting = [outer for outer in joined[-MOST_COMPARED:] if _is_within(group, outer)]
        if fitting:
            question = group[0].content.question
            alike = [outer for outer in fitting if question in [piece.content.question for piece in outer]]
            (alike or fitting)[0].extend(group)
        else:
            joined.append(group)
    return joined


def _is_within(group: Sequence[Piece], outer: Sequence[Piece]) -> bool:
    if not _may_be_one(outer, group) or not {piece.scope for piece in outer}.isdisjoint(piece.scope for piece in group):
        return False
    first = group[0]
    return any(piece.started <= first.started and first.ended <= piece.ended for piece in outer)


def _may_be_one(group: Sequence[Piece], other: Sequence[Piece]) -> bool:
    return len({piece.content.response_id for piece in (*group, *other)} - {None}) <= 1


def _began(piece: Piece) -> tuple[int, int]:
    return piece.started, -piece.ended


def _join(group: Sequence[Piece]) -> Piece:
    if len(group) == 1:
        return group[0]
    group = sorted(group, key=_began)
    winner = next((piece for piece in group if piece.content.declared), group[-1])
    content = fill(winner.content, [piece.content for piece in reversed(group) if piece is not winner])
    return winner._replace(content=content, started=group[-1].started)

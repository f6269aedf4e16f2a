"""Join the spans of one trace as they come: a retriever's span has the sources, the LLM's span the answer.

An answer is ready when the root span of its trace (within its process) has ended, because its siblings have ended by
then too. If the root never ends, the answer is ready once no span of the trace has ended for a while.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from calibrate.ingest.spans.answers import Answer, join
from calibrate.ingest.spans.content import SpanContent
from calibrate.ingest.spans.nesting import Piece
from calibrate.ingest.spans.record import SpanRecord


@dataclass(slots=True)
class _Open:
    touched: float
    pieces: list[Piece] = field(default_factory=list)
    answers: int = 0
    characters: int = 0
    rooted: bool = False


class Gather:
    """The spans of traces that are not complete yet.

    Holds at most `most` spans with `most_characters` of text, and each trace for at most `seconds` after its last span.
    `now` is any clock in seconds. Without `at_root` the end of a root completes no trace: a file has them in any order.
    """

    def __init__(self, *, seconds: float, most: int, most_characters: float = math.inf, at_root: bool = True) -> None:
        self._seconds, self._most, self._most_characters, self._at_root = seconds, most, most_characters, at_root
        self._characters = 0
        self._evicted: list[str] = []
        self._open: OrderedDict[str, _Open] = OrderedDict()  # first the trace that has been silent longest
        self._span_count = 0
        self.answers = 0

    def add(
        self, span: SpanRecord, content: SpanContent, *, answer: bool, now: float, origin: object = None
    ) -> list[Answer]:
        """Add a span that holds something, or is the root of its trace.

        Parameters
        ----------
        span : SpanRecord
        content : SpanContent
            What the reader read from it.
        answer : bool
            Whether it holds an answer.
        now : float
            The time on the caller's clock.
        origin : object
            Anything that the answer is to carry.

        Returns
        -------
        list of Answer
            Those that are ready because of it.
        """
        piece = Piece.of(span, content, answer=answer, origin=origin)
        open_trace = self._open.get(span.trace_id)
        if open_trace is None:
            if self._at_root and not (answer or content.says_something or (content.question and not span.is_root)):
                return []  # the root of a trace without a model in it
            open_trace = self._open[span.trace_id] = _Open(now)
        open_trace.touched = now
        self._open.move_to_end(span.trace_id)
        open_trace.pieces.append(piece)
        self._span_count += 1
        size = content.size
        open_trace.characters += size
        self._characters += size
        open_trace.rooted |= span.is_root and self._at_root
        open_trace.answers += answer
        self.answers += answer
        # A streamed answer can outlast its root span: then the sources wait for it.
        ready = self._close(span.trace_id) if open_trace.rooted and open_trace.answers else []
        while self._span_count > self._most or self._characters > self._most_characters:
            oldest = next(iter(self._open))
            if not self._at_root:
                self._evicted.append(oldest)
            ready += self._close(oldest)
        return ready

    def has(self, trace_id: str) -> bool:
        """Whether spans of this trace are held."""
        return trace_id in self._open

    def evicted(self) -> list[str]:
        """Return the traces of a file that went for lack of room since the last call."""
        evicted, self._evicted = self._evicted, []
        return evicted

    def overdue(self, *, now: float) -> list[Answer]:
        """Remove and return the answers of traces that have been silent for too long."""
        ready: list[Answer] = []
        while self._open and now - next(iter(self._open.values())).touched >= self._seconds:
            ready += self._close(next(iter(self._open)))
        return ready

    def all(self) -> list[Answer]:
        """Remove and return every answer, ready or not."""
        return list(self.drain())

    def drain(self) -> Iterator[Answer]:
        """Remove and return every answer, ready or not, trace by trace."""
        while self._open:
            yield from self._close(next(iter(self._open)))

    def wait(self, *, now: float) -> float | None:
        """Seconds until a trace is overdue; None without a trace."""
        first = next(iter(self._open.values()), None)
        return None if first is None else max(0.0, first.touched + self._seconds - now)

    def _close(self, trace_id: str) -> list[Answer]:
        closed = self._open.pop(trace_id)
        self._span_count -= len(closed.pieces)
        self._characters -= closed.characters
        self.answers -= closed.answers
        return join(closed.pieces)

"""Make the answers of a trace from its spans, and rows for an import from the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from calibrate.ingest.base import Row
from calibrate.ingest.spans.content import Evaluation
from calibrate.ingest.spans.joining import build_trace, evaluations_of
from calibrate.ingest.spans.nesting import Piece, join_nested
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import SpanRecord
from calibrate.ingest.stated_scores import OURS, fit_name
from calibrate.ingest.values import repair
from calibrate.types import Source, Token, Trace


@dataclass(frozen=True, slots=True)
class Answer:
    """One LLM answer.

    Attributes
    ----------
    trace : Trace
        The answer with everything that the spans of its trace say about it.
    trace_id, span_id : str
        Of the LLM span.
    response_id : str or None
        The model's own id of the answer.
    nested : int
        Further spans of the trace that have this same answer.
    evaluations : tuple of Evaluation
        What others said about it.
    origin : object
        Whatever was given with the LLM span.
    """

    trace: Trace
    trace_id: str
    span_id: str
    response_id: str | None = None
    nested: int = 0
    evaluations: tuple[Evaluation, ...] = ()
    origin: object = None


def answers_of(spans: Iterable[SpanRecord], reader: Reader | None = None) -> Iterator[Answer]:
    """Read the answers of whole traces.

    Parameters
    ----------
    spans : iterable of SpanRecord
        All spans of one or several traces, in any order. They are held in memory.
    reader : Reader, optional
        By default one that knows the conventions.

    Returns
    -------
    iterator of Answer
        In order of the traces' first spans, and of their beginning within a trace.
    """
    reader = reader or Reader()
    traces: dict[str, list[Piece]] = {}
    for span in spans:
        holds = reader.holds(span)
        if holds or span.is_root:
            content = reader.read(span)
            answer = holds == "answer" and bool(content.answers)
            traces.setdefault(span.trace_id, []).append(Piece.of(span, content, answer=answer))
    for pieces in traces.values():
        yield from join(pieces)


def join(pieces: Sequence[Piece]) -> list[Answer]:
    """Make the answers of one trace.

    Parameters
    ----------
    pieces : sequence of Piece
        All spans of the trace that say something. Of a span that came twice, as exporters send again what may not have
        arrived, the last counts.

    Returns
    -------
    list of Answer
        In order of their beginning, one where several spans carry the same.
    """
    pieces = sorted(
        {piece.span_id: piece for piece in pieces}.values(),
        key=lambda piece: (piece.started, piece.ended, piece.span_id),
    )
    joined = join_nested([piece for piece in pieces if piece.answer])
    return [
        Answer(
            trace=build_trace(piece, pieces, alone=len(joined) == 1, nested=others > 0),
            trace_id=piece.trace_id,
            span_id=piece.span_id,
            response_id=piece.content.response_id,
            nested=others,
            evaluations=evaluations_of(piece, pieces),
            origin=piece.origin,
        )
        for piece, others in joined
    ]


def row_of(answer: Answer, line: int) -> Row:
    """Write an answer as a record that is imported: `calibrate.ingest.record.build` checks it.

    Parameters
    ----------
    answer : Answer
    line : int
        The place in the file, or a count, that errors name.

    Returns
    -------
    Row
        What no database can store is replaced.
    """
    trace = answer.trace
    fields: dict[str, Any] = {
        "trace_id": trace.id,
        "timestamp": trace.timestamp,
        "model": trace.model,
        "operation": trace.operation,
        "question": trace.question,
        "context": trace.context,
        "answer": trace.answer,
        "schema": trace.schema,
        "alternatives": list(trace.alternatives),
        "attributes": dict(trace.attributes),
        "sources": [_source_fields(source) for source in trace.sources],
        "tokens": None if trace.tokens is None else [_token_fields(token) for token in trace.tokens],
        "scores": _score_fields(answer.evaluations),
    }
    present = {name: value for name, value in fields.items() if value is not None and value != []}
    repaired, characters = repair(present)
    size = sum(len(text) for text in (trace.answer, trace.question or "", trace.context or "", *trace.alternatives))
    size += sum(len(source.text) for source in trace.sources) + 60 * len(trace.tokens or ())
    return Row(line, repaired, size, characters)


def _score_fields(evaluations: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """What evaluators said, in their order, once each. A label without a number, and another number under a name that
    had one, are no scores: the check of the record says so."""
    evaluated: dict[tuple[str, object], Evaluation] = {}
    for each in evaluations:
        evaluated.setdefault((fit_name(each.name), each.label if each.value is None else each.value), each)
    return [
        {"name": name, "value": value, "reason": each.explanation}
        for (name, value), each in evaluated.items()
        if value is not None and not name.startswith(OURS)
    ]


def _source_fields(source: Source) -> dict[str, Any]:
    fields = {
        "number": source.number,
        "text": source.text,
        "title": source.title,
        "retrieval_score": source.retrieval_score,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _token_fields(token: Token) -> dict[str, Any]:
    top = [{"token": text, "logprob": logprob} for text, logprob in token.top]
    return {"token": token.text, "logprob": token.logprob, "top_logprobs": top}

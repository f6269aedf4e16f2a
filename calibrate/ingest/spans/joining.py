"""Put together the trace of one answer from the spans of its trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from calibrate.ingest.spans.content import Document, Evaluation
from calibrate.ingest.spans.fields.logprobs import spells
from calibrate.ingest.spans.nesting import Piece
from calibrate.ingest.spans.record import answer_id
from calibrate.types import Source, Token, Trace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def build_trace(piece: Piece, pieces: Sequence[Piece], *, alone: bool, nested: bool) -> Trace:
    """Build an answer's trace.

    Only spans that began before the model was asked contribute; where the program itself gave the answer, those that
    began before it had ended.

    Parameters
    ----------
    piece : Piece
        The span with the answer.
    pieces : sequence of Piece
        All spans of the trace that say something, in order of their beginning.
    alone : bool
        Whether this is the only answer of its trace.
    nested : bool
        Whether the piece was joined from several spans.

    Returns
    -------
    Trace
    """
    content = piece.content
    until = piece.ended if content.declared and not nested else piece.started
    before = [earlier for earlier in pieces if earlier.started <= until]
    attributes = dict(chain.from_iterable(earlier.content.attributes.items() for earlier in before))
    return Trace(
        id=content.trace_id or answer_id(piece.trace_id, piece.span_id),
        answer=content.answers[0] if content.answers else "",
        question=_choose_question(piece, before),
        context=content.context or next((each.content.context for each in before if each.content.context), None),
        sources=_number_sources(_choose_documents(piece, before), _choose_results(piece, before)),
        tokens=content.tokens or _find_tokens(piece, before, alone=alone),
        alternatives=content.answers[1:],
        schema=_choose_schema(piece, before, alone=alone),
        timestamp=_to_datetime(piece.started),
        model=content.model or _find_model(piece, before),
        operation=_choose_operation(piece, before),
        attributes=attributes | dict(content.attributes),
    )


def evaluations_of(piece: Piece, pieces: Iterable[Piece]) -> tuple[Evaluation, ...]:
    """What evaluators said of an answer: on its span, on a child of it, or with the model's id of the answer."""
    response_id = piece.content.response_id
    evaluations = dict.fromkeys(piece.content.evaluations)
    for other in pieces:
        for evaluation in other.content.evaluations:
            named = evaluation.response_id is not None and evaluation.response_id == response_id
            if named or other.parent == piece.span_id or other.span_id == piece.span_id:
                evaluations[evaluation] = None
    return tuple(evaluations)


def _to_datetime(nanoseconds: int) -> datetime | None:
    """Convert nanoseconds of the epoch. None for 0, and beyond the calendar: a program may give its spans any time."""
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000) if nanoseconds else None
    except OverflowError:
        return None


def _choose_question(piece: Piece, before: Sequence[Piece]) -> str | None:
    """Choose what the program itself calls the question; else the retriever's query if the prompt is a template around
    it; else the prompt."""
    question = piece.content.question
    if question is not None and "question" in piece.content.own:
        return question
    own = [earlier.content.question for earlier in before if "question" in earlier.content.own]
    if own and own[-1]:
        return own[-1]
    if question is None:
        return next((earlier.content.question for earlier in before if earlier.content.question), None)
    queries = (earlier.content.query for earlier in before if earlier.content.query)
    return next((query for query in queries if query in question), question)


def _choose_operation(piece: Piece, before: Sequence[Piece]) -> str | None:
    """Choose what the program itself calls the operation, else what the convention does."""
    own = [earlier.content.operation for earlier in (*before, piece) if "operation" in earlier.content.own]
    return next((operation for operation in reversed(own) if operation), piece.content.operation)


def _choose_documents(piece: Piece, before: Sequence[Piece]) -> Iterable[Document]:
    """Choose the documents of the span itself, else what a reranker left, else all that was retrieved."""
    if piece.content.documents:
        return piece.content.documents
    reranked = [earlier for earlier in before if earlier.content.reranked]
    return chain.from_iterable(earlier.content.documents for earlier in reranked or before)


def _choose_results(piece: Piece, before: Sequence[Piece]) -> Iterable[Document]:
    """Choose what tools returned as the model was told, else as their own spans say."""
    return piece.content.results or chain.from_iterable(
        earlier.content.results for earlier in before if not earlier.answer
    )


def _find_tokens(piece: Piece, before: Iterable[Piece], *, alone: bool) -> tuple[Token, ...] | None:
    """Find the tokens that another span has: this answer's if they spell it, or if there is no other answer."""
    others = [earlier.content.tokens for earlier in before if not earlier.answer]
    answer = piece.content.answers[0] if piece.content.answers else ""
    return next((tokens for tokens in reversed(others) if tokens and (alone or spells(tokens, answer))), None)


def _choose_schema(piece: Piece, before: Iterable[Piece], *, alone: bool) -> Any:
    """Choose the schema of the span itself, else of its parent, or of any other where there is only one answer."""
    if piece.content.schema is not None:
        return piece.content.schema
    others = [other for other in before if other.content.schema is not None and not other.answer]
    return next((other.content.schema for other in reversed(others) if alone or other.span_id == piece.parent), None)


def _find_model(piece: Piece, before: Sequence[Piece]) -> str | None:
    """Find the model of an answer that the program itself gave: that of the last call within its span."""
    if not piece.content.declared:
        return None
    within = [call for call in before if call.started >= piece.started and call.content.model]
    return within[-1].content.model if within else None


def _number_sources(documents: Iterable[Document], results: Iterable[Document]) -> tuple[Source, ...]:
    """Number the sources by their own numbers if all are distinct, else from 1 in order, each text once.

    Prompts list retrieved passages in that order, so answers cite them by it. What tools returned follows them.
    Documents without a text count where none has one; else they lend their score to the document of the same id.
    """
    by_content = {(document.number, document.id, document.text): document for document in documents}
    if any(document.text for document in by_content.values()):
        scores = {document.id: document.score for document in by_content.values() if not document.text}
        by_content = {
            key: document if document.score is not None else document._replace(score=scores.get(document.id))
            for key, document in by_content.items()
            if document.text
        }
    texts = {document.text for document in by_content.values()}
    by_text = {document.text: document for document in results if document.text not in texts}
    distinct = [*by_content.values(), *by_text.values()]
    numbers = [document.number or str(place) for place, document in enumerate(distinct, start=1)]
    if len(set(numbers)) < len(numbers):
        numbers = [str(place) for place in range(1, len(distinct) + 1)]
    return tuple(
        [
            Source(number, document.text, document.title or document.id, document.score)
            for number, document in zip(numbers, distinct, strict=True)
        ]
    )

"""What one span says about an answer, whatever convention it follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from calibrate.types import Token

Scalar = str | int | float | bool | None

OWN_FIELDS = (
    "trace_id",
    "question",
    "answer",
    "alternatives",
    "context",
    "sources",
    "tokens",
    "schema",
    "model",
    "operation",
    "attributes",
)
"""Fields that a program may give in attributes of its own: `touchstone.answer` and so on, unless it names others."""


class Document(NamedTuple):
    """A retrieved document. Its text is empty where only id and score are told, as the GenAI conventions do."""

    id: str | None
    text: str
    score: float | None
    number: str | None = None
    title: str | None = None


class Evaluation(NamedTuple):
    """What an evaluator said about an answer: an event `gen_ai.evaluation.result`."""

    name: str
    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class SpanContent:
    """What one span says.

    `query` is what a retriever was asked. `reranked` means that the documents are a reranker's output. `results` is
    what tools returned: to the model in an LLM span's messages, or in a tool's own span. `attributes` are the span's
    short scalars that are no content. `response_id` is the model's own id of its answer. `own` are the fields that the
    program itself gave, in attributes of its own.
    """

    trace_id: str | None = None
    question: str | None = None
    query: str | None = None
    answers: tuple[str, ...] = ()
    context: str | None = None
    documents: tuple[Document, ...] = ()
    reranked: bool = False
    results: tuple[Document, ...] = ()
    tokens: tuple[Token, ...] | None = None
    schema: Mapping[str, Any] | bool | None = None
    model: str | None = None
    operation: str | None = None
    attributes: Mapping[str, Scalar] = field(default_factory=dict)
    response_id: str | None = None
    evaluations: tuple[Evaluation, ...] = ()
    own: frozenset[str] = frozenset()

    @property
    def declared(self) -> bool:
        """Whether the program itself gave the answer."""
        return "answer" in self.own

    @property
    def size(self) -> int:
        """Roughly how many characters it holds."""
        texts = (self.question or "", self.context or "", *self.answers)
        documents = sum([len(document.text) + 100 for document in (*self.documents, *self.results)])
        return 500 + sum(map(len, texts)) + documents + 100 * len(self.tokens or ()) + 100 * len(self.attributes)

    @property
    def says_something(self) -> bool:
        """Whether an answer on another span of the trace may need it."""
        return bool(self.documents or self.results or self.own or self.evaluations or self.tokens or self.schema)


SILENT = SpanContent()
"""Of a span that says nothing by a convention."""


def fill(content: SpanContent, others: Iterable[SpanContent]) -> SpanContent:
    """Take what the content does not say from others, the first of them first.

    Parameters
    ----------
    content : SpanContent
    others : iterable of SpanContent

    Returns
    -------
    SpanContent
    """
    for other in others:
        if other is SILENT:
            continue
        if content is SILENT and not other.own:
            content = other
            continue
        content = replace(
            content,
            trace_id=content.trace_id or other.trace_id,
            question=content.question or other.question,
            query=content.query or other.query,
            answers=content.answers if len(content.answers) >= len(other.answers) else other.answers,
            context=content.context or other.context,
            documents=content.documents or other.documents,
            reranked=content.reranked if content.documents else other.reranked,
            results=content.results or other.results,
            tokens=content.tokens or other.tokens,
            schema=other.schema if content.schema is None else content.schema,
            model=content.model or other.model,
            operation=content.operation or other.operation,
            attributes={**other.attributes, **content.attributes},
            response_id=content.response_id or other.response_id,
            evaluations=tuple(dict.fromkeys(content.evaluations + other.evaluations)),
        )
    return content

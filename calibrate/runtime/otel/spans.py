"""What one span says of an answer, by the conventions of OpenTelemetry (`gen_ai.*`), OpenInference, OpenLLMetry, or
the program's own attribute names.

Sources of the names: the OpenTelemetry GenAI semantic conventions (semantic-conventions-genai, gen-ai-spans and
gen-ai-events, and the span events of v1.36 and before), the OpenInference specification (semantic conventions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from calibrate.runtime.otel.messages import Message, indexed, messages, parsed
from calibrate.types import Token

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

IsLlm = Callable[["ReadableSpan"], bool]
Scalar = str | int | float | bool | None
Holds = Literal["answer", "sources"]

OWN = ("trace_id", "question", "answer", "context", "sources", "tokens", "schema", "model", "operation")
"""What a program may say in attributes of its own; `touchstone.answer` and so on unless it names others."""

_KINDS = frozenset(("gen_ai.operation.name", "openinference.span.kind"))
_INFERENCE = ("chat", "text_completion", "generate_content", "LLM")
_RETRIEVAL = ("retrieval", "RETRIEVER", "RERANKER")
_ANSWERS = ("gen_ai.output.messages", "gen_ai.completion.0.content")
_SOURCES = ("gen_ai.retrieval.documents", "retrieval.documents.0.document.content")
_CONTENT = ("gen_ai.", "llm.", "input.", "output.", "retrieval.", "reranker.", "openinference.", "touchstone.")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_DETAILS = frozenset(
    ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
)
_EVENT_ROLES = {"gen_ai.user.message": "user", "gen_ai.choice": "assistant"}
LONGEST_ATTRIBUTE = 200
MOST_ATTRIBUTES = 64


def trace_id_of(context: SpanContext) -> str:
    """The id of the trace whose answer an LLM span holds, unless its `touchstone.trace_id` says another."""
    return f"{context.trace_id:032x}-{context.span_id:016x}"


class Document(NamedTuple):
    id: str | None
    text: str
    score: float | None
    number: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What one span says; empty where it says nothing. `query` is what a retriever was asked, `reranked` that the
    documents are those that a reranker left. `attributes` are the span's short scalars that are not content."""

    trace_id: str | None = None
    question: str | None = None
    query: str | None = None
    answers: tuple[str, ...] = ()
    context: str | None = None
    documents: tuple[Document, ...] = ()
    reranked: bool = False
    tokens: tuple[Token, ...] | None = None
    schema: Mapping[str, Any] | bool | None = None
    model: str | None = None
    operation: str | None = None
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """`is_llm` replaces the choice of the spans that hold an answer; `names` maps a field of OWN to the attribute that
    has it. Raises ValueError for a field that is none."""

    is_llm: IsLlm | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    _answers: frozenset[str] = field(init=False)
    _sources: frozenset[str] = field(init=False)
    _marks: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.names, Mapping) or not all(isinstance(name, str) for name in self.names.values()):
            raise ValueError(f"it cannot be {self.names!r}; give {{field: name of an attribute}}")
        if unknown := sorted(set(self.names) - set(OWN)):
            raise ValueError(f"no field {', '.join(unknown)}; there are: {', '.join(OWN)}")
        names = {name: f"touchstone.{name}" for name in OWN} | dict(self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_answers", frozenset((names["answer"], *_ANSWERS)))
        object.__setattr__(self, "_sources", frozenset((names["sources"], *_SOURCES)))
        object.__setattr__(self, "_marks", self._answers | self._sources | _KINDS)

    def holds(self, span: ReadableSpan) -> Holds | None:
        """What the conventions say of a span, in one pass over the names of its attributes. Where the program has a
        rule of its own, that alone says which spans hold answers: it is asked where they end."""
        attributes = span.attributes or {}
        marks = self._marks.intersection(attributes)
        if not marks:
            return None
        if "gen_ai.operation.name" in marks:  # what a span says that it is goes before what is found on it
            kind = attributes["gen_ai.operation.name"]
        elif "openinference.span.kind" in marks:
            kind = attributes["openinference.span.kind"]
        else:
            kind = "chat" if not marks.isdisjoint(self._answers) else None
        if self.is_llm is None and kind in _INFERENCE:
            return "answer"
        return "sources" if kind in _RETRIEVAL or not marks.isdisjoint(self._sources) else None

    def read(self, span: ReadableSpan) -> Said:
        """All that the span says, whatever it is there for."""
        attributes = _with_events(span)
        own = {name: attributes.get(key) for name, key in self.names.items()}
        ranked = _flat_documents(attributes, "reranker.output_documents")
        found = _own_documents(own["sources"]) or ranked or _documents(attributes.get("gen_ai.retrieval.documents"))
        answers = [_str(own["answer"])] if own["answer"] is not None else _answers(attributes)
        context = _str(own["context"])
        return Said(
            trace_id=_str(own["trace_id"]),
            question=_str(own["question"]) or _question(attributes),
            query=_str(attributes.get("gen_ai.retrieval.query.text")) or _plain(attributes, "input"),
            answers=tuple(text for text in answers if text),
            context=context,
            documents=tuple(found or _flat_documents(attributes, "retrieval.documents")),
            reranked=bool(ranked),
            tokens=_tokens(own["tokens"]),
            schema=_schema(own["schema"]),
            model=_str(own["model"]) or _first(attributes, *_MODELS),
            operation=_str(own["operation"]) or _str(attributes.get("gen_ai.operation.name")),
            attributes=_scalars(attributes, set(self.names.values())),
        )


def _with_events(span: ReadableSpan) -> dict[str, Any]:
    """The span's attributes with those of its events that carry content, as older instrumentations write it."""
    attributes: dict[str, Any] = dict(span.attributes or {})
    said: dict[str, list[Message]] = {"user": [], "assistant": []}
    for event in span.events:
        values = event.attributes or {}
        if event.name in (
            "gen_ai.client.inference.operation.details",
            "gen_ai.content.prompt",
            "gen_ai.content.completion",
        ):
            attributes = {**values, **attributes}
        elif role := _EVENT_ROLES.get(event.name):
            content = values.get("gen_ai.event.content", values.get("message", values.get("content")))
            said[role] += messages(content, role, sure=isinstance(content, Mapping) or "gen_ai.event.content" in values)
    for role, key in (("user", "gen_ai.input.messages"), ("assistant", "gen_ai.output.messages")):
        if said[role]:
            attributes.setdefault(key, [{"role": one.role, "content": one.text} for one in said[role]])
    return attributes


def _question(attributes: Mapping[str, Any]) -> str | None:
    """The last that the user said."""
    asked = (
        messages(attributes.get("gen_ai.input.messages"), "user")
        or _flat_messages(attributes, "llm.input_messages", "user")
        or messages(indexed(attributes, "gen_ai.prompt"), "user")
        or messages(attributes.get("gen_ai.prompt"), "user", sure=False)
    )
    said = [one.text for one in asked if one.role == "user" and one.text]
    return said[-1] if said else _plain(attributes, "input")


def _answers(attributes: Mapping[str, Any]) -> list[str | None]:
    """What the model said: the answer, then the other choices where several were asked for."""
    said = (
        messages(attributes.get("gen_ai.output.messages"), "assistant")
        or _flat_messages(attributes, "llm.output_messages", "assistant")
        or messages(indexed(attributes, "gen_ai.completion"), "assistant")
        or messages(attributes.get("gen_ai.completion"), "assistant", sure=False)
    )
    return [one.text for one in said] or [_plain(attributes, "output")]


def _flat_messages(attributes: Mapping[str, Any], prefix: str, role: str) -> list[Message]:
    """OpenInference: `llm.input_messages.0.message.content`, or `.message.contents.0.message_content.text`."""
    found = []
    for one in indexed(attributes, prefix):
        parts = [_str(part.get("message_content.text")) for part in indexed(one, "message.contents")]
        text = _str(one.get("message.content")) or "\n".join(part for part in parts if part)
        found.append(Message(str(one.get("message.role", role)), text))
    return [one for one in found if one.text]


def _flat_documents(attributes: Mapping[str, Any], prefix: str) -> list[Document]:
    flat = (
        {name.removeprefix("document."): value for name, value in one.items()} for one in indexed(attributes, prefix)
    )
    return _documents(list(flat))


def _own_documents(value: Any) -> list[Document]:
    """Those of a program's own attribute, which may be as a record has them: `{number: text or object}`, or a list of
    objects that say their number. The answer cites by these numbers, so they are kept."""
    read = parsed(value) if isinstance(value, str) else value
    if isinstance(read, Mapping):
        read = [
            {**(one if isinstance(one, Mapping) else {"text": one}), "number": str(number)}
            for number, one in read.items()
        ]
    if not isinstance(read, Sequence) or isinstance(read, (str, bytes)):
        return _documents(read)
    return [document._replace(number=_number(one)) for one in read for document in _documents([one])]


def _number(document: Any) -> str | None:
    number = document.get("number") if isinstance(document, Mapping) else None
    return str(number) if isinstance(number, (str, int)) and not isinstance(number, bool) else None


def _documents(value: Any) -> list[Document]:
    """Texts, or objects with a text; one that names no text is no source, as nothing can be found in it."""
    read = parsed(value) if isinstance(value, str) else value
    if isinstance(read, str):
        read = [read]
    return list(_each_document(read)) if isinstance(read, Sequence) and not isinstance(read, bytes) else []


def _each_document(read: Sequence[Any]) -> Iterator[Document]:
    for one in read:
        if isinstance(one, str) and one:
            yield Document(None, one, None)
        elif isinstance(one, Mapping) and (text := _first(one, "content", "text", "page_content")):
            name = one.get("id", one.get("title"))
            score = one.get("score", one.get("retrieval_score"))
            fine = isinstance(score, (int, float)) and math.isfinite(score)
            yield Document(None if name is None else str(name), text, float(score) if fine else None)


def _tokens(value: Any) -> tuple[Token, ...] | None:
    """`[{token, logprob, top_logprobs}]` as the OpenAI API answers, bare or under `content`; None if one is broken, as
    half an answer's tokens would pass for all."""
    read = parsed(value) if isinstance(value, str) else value
    read = read.get("content") if isinstance(read, Mapping) else read
    if not isinstance(read, Sequence) or isinstance(read, (str, bytes)) or not read:
        return None
    try:
        return tuple([Token(*_pair(one), tuple(_pair(top) for top in one.get("top_logprobs") or ())) for one in read])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _pair(one: Any) -> tuple[str, float]:
    logprob = float(one["logprob"])
    if not isinstance(one["token"], str) or not math.isfinite(logprob):
        raise ValueError
    return one["token"], logprob


def _schema(value: Any) -> Mapping[str, Any] | bool | None:
    read = parsed(value) if isinstance(value, str) else value
    return read if isinstance(read, (Mapping, bool)) else None


def _scalars(attributes: Mapping[str, Any], used: set[str]) -> dict[str, Scalar]:
    kept: dict[str, Scalar] = {}
    for key, value in attributes.items():
        if key.startswith(_CONTENT) or key in used or not isinstance(value, (str, int, float, bool)):
            continue
        if not (isinstance(value, str) and len(value) > LONGEST_ATTRIBUTE) and len(kept) < MOST_ATTRIBUTES:
            kept[key] = value
    return kept


def _plain(attributes: Mapping[str, Any], side: str) -> str | None:
    """OpenInference's `input.value` or `output.value` where it is text for people."""
    if attributes.get(f"{side}.mime_type", "text/plain") != "text/plain":
        return None
    return _str(attributes.get(f"{side}.value"))


def _first(attributes: Mapping[str, Any], *keys: str) -> str | None:
    return next((text for key in keys if (text := _str(attributes.get(key)))), None)


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None

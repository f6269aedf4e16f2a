"""Read what one span says about an answer, by a convention or by the program's own attribute names.

The conventions: OpenTelemetry GenAI (semantic-conventions-genai, gen-ai-spans and gen-ai-events, and the span events of
v1.36 and before), the OpenInference specification, and OpenLLMetry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from calibrate.runtime.otel.messages import Message, messages, parse_json, unflatten
from calibrate.types import Token

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

IsLlm = Callable[["ReadableSpan"], bool]
Scalar = str | int | float | bool | None
Holds = Literal["answer", "sources"]

OWN_FIELDS = ("trace_id", "question", "answer", "context", "sources", "tokens", "schema", "model", "operation")
"""Fields that a program may give in attributes of its own: `touchstone.answer` and so on, unless it names others."""

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
MAX_ATTRIBUTE_LENGTH = 200
MAX_ATTRIBUTES = 64


def trace_id_of(context: SpanContext) -> str:
    """Name the trace of an LLM span's answer, unless the span's `touchstone.trace_id` does.

    Parameters
    ----------
    context : SpanContext
        Of the LLM span.

    Returns
    -------
    str
        Its trace id and span id in hexadecimal, joined by a hyphen.
    """
    return f"{context.trace_id:032x}-{context.span_id:016x}"


class Document(NamedTuple):
    id: str | None
    text: str
    score: float | None
    number: str | None = None


@dataclass(frozen=True, slots=True)
class SpanContent:
    """What one span says.

    `query` is what a retriever was asked. `reranked` means that the documents are a reranker's output. `attributes` are
    the span's short scalars that are no content. `response_id` is the model's own id of its answer. `declared` means
    that the program itself gave the answer, in an attribute of its own.
    """

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
    response_id: str | None = None
    declared: bool = False


@dataclass(frozen=True)
class Reader:
    """Reads spans.

    `is_llm` replaces the rule for which spans hold an answer. `names` maps fields of OWN_FIELDS to the attributes that
    hold them. Raises ValueError for an unknown field.
    """

    is_llm: IsLlm | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    _answers: frozenset[str] = field(init=False)
    _sources: frozenset[str] = field(init=False)
    _marks: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.names, Mapping) or not all(isinstance(name, str) for name in self.names.values()):
            raise ValueError(f"it cannot be {self.names!r}; give {{field: name of an attribute}}")
        if unknown := sorted(set(self.names) - set(OWN_FIELDS)):
            raise ValueError(f"no field {', '.join(unknown)}; there are: {', '.join(OWN_FIELDS)}")
        names = {name: f"touchstone.{name}" for name in OWN_FIELDS} | dict(self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_answers", frozenset((names["answer"], *_ANSWERS)))
        object.__setattr__(self, "_sources", frozenset((names["sources"], *_SOURCES)))
        object.__setattr__(self, "_marks", self._answers | self._sources | _KINDS)

    def holds(self, span: ReadableSpan) -> Holds | None:
        """Classify a span by the conventions, in one pass over the names of its attributes.

        If the program has a rule of its own, only that decides which spans hold answers; it runs where they end.
        """
        attributes = span.attributes or {}
        marks = self._marks.intersection(attributes)
        if not marks:
            return None
        if "gen_ai.operation.name" in marks:  # a span's declared kind outranks the attributes it has
            kind = attributes["gen_ai.operation.name"]
        elif "openinference.span.kind" in marks:
            kind = attributes["openinference.span.kind"]
        else:
            kind = "chat" if not marks.isdisjoint(self._answers) else None
        if self.is_llm is None and kind in _INFERENCE:
            return "answer"
        return "sources" if kind in _RETRIEVAL or not marks.isdisjoint(self._sources) else None

    def read(self, span: ReadableSpan) -> SpanContent:
        """Read everything that the span says, of whatever kind it is."""
        attributes = _merge_events(span)
        own = {name: attributes.get(key) for name, key in self.names.items()}
        ranked = _read_flat_documents(attributes, "reranker.output_documents")
        documents = (
            _parse_own_documents(own["sources"])
            or ranked
            or _parse_documents(attributes.get("gen_ai.retrieval.documents"))
        )
        answers = [_text_or_none(own["answer"])] if own["answer"] is not None else _read_answers(attributes)
        context = _text_or_none(own["context"])
        return SpanContent(
            trace_id=_text_or_none(own["trace_id"]),
            question=_text_or_none(own["question"]) or _read_question(attributes),
            query=_text_or_none(attributes.get("gen_ai.retrieval.query.text"))
            or _openinference_text(attributes, "input"),
            answers=tuple(text for text in answers if text),
            context=context,
            documents=tuple(documents or _read_flat_documents(attributes, "retrieval.documents")),
            reranked=bool(ranked),
            tokens=_parse_tokens(own["tokens"]),
            schema=_parse_schema(own["schema"]),
            model=_text_or_none(own["model"]) or _first_text(attributes, *_MODELS),
            operation=_text_or_none(own["operation"]) or _text_or_none(attributes.get("gen_ai.operation.name")),
            attributes=_select_scalars(attributes, set(self.names.values())),
            response_id=_text_or_none(attributes.get("gen_ai.response.id")),
            declared=own["answer"] is not None,
        )


def _merge_events(span: ReadableSpan) -> dict[str, Any]:
    """The span's attributes and those of its events that carry content, as older instrumentations write it."""
    attributes: dict[str, Any] = dict(span.attributes or {})
    by_role: dict[str, list[Message]] = {"user": [], "assistant": []}
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
            by_role[role] += messages(
                content, role, sure=isinstance(content, Mapping) or "gen_ai.event.content" in values
            )
    for role, key in (("user", "gen_ai.input.messages"), ("assistant", "gen_ai.output.messages")):
        if by_role[role]:
            attributes.setdefault(key, [{"role": message.role, "content": message.text} for message in by_role[role]])
    return attributes


def _read_question(attributes: Mapping[str, Any]) -> str | None:
    """The user's last message."""
    chat = (
        messages(attributes.get("gen_ai.input.messages"), "user")
        or _read_flat_messages(attributes, "llm.input_messages", "user")
        or messages(unflatten(attributes, "gen_ai.prompt"), "user")
        or messages(attributes.get("gen_ai.prompt"), "user", sure=False)
    )
    texts = [message.text for message in chat if message.role == "user" and message.text]
    return texts[-1] if texts else _openinference_text(attributes, "input")


def _read_answers(attributes: Mapping[str, Any]) -> list[str | None]:
    """The model's answer, then the other choices if several were requested."""
    chat = (
        messages(attributes.get("gen_ai.output.messages"), "assistant")
        or _read_flat_messages(attributes, "llm.output_messages", "assistant")
        or messages(unflatten(attributes, "gen_ai.completion"), "assistant")
        or messages(attributes.get("gen_ai.completion"), "assistant", sure=False)
    )
    return [message.text for message in chat] or [_openinference_text(attributes, "output")]


def _read_flat_messages(attributes: Mapping[str, Any], prefix: str, role: str) -> list[Message]:
    """OpenInference: `llm.input_messages.0.message.content`, or `.message.contents.0.message_content.text`."""
    chat = []
    for entry in unflatten(attributes, prefix):
        parts = [_text_or_none(part.get("message_content.text")) for part in unflatten(entry, "message.contents")]
        text = _text_or_none(entry.get("message.content")) or "\n".join(part for part in parts if part)
        chat.append(Message(str(entry.get("message.role", role)), text))
    return [entry for entry in chat if entry.text]


def _read_flat_documents(attributes: Mapping[str, Any], prefix: str) -> list[Document]:
    flat = (
        {name.removeprefix("document."): value for name, value in entry.items()}
        for entry in unflatten(attributes, prefix)
    )
    return _parse_documents(list(flat))


def _parse_own_documents(value: Any) -> list[Document]:
    """Read the sources of a program's own attribute, with their numbers: the answer cites by them.

    As in a record, that is `{number: text or object}`, or a list of objects that may have a `number`.
    """
    decoded = parse_json(value) if isinstance(value, str) else value
    if isinstance(decoded, Mapping):
        decoded = [
            {**(entry if isinstance(entry, Mapping) else {"text": entry}), "number": str(number)}
            for number, entry in decoded.items()
        ]
    if not isinstance(decoded, Sequence) or isinstance(decoded, (str, bytes)):
        return _parse_documents(decoded)
    return [
        document._replace(number=_document_number(entry)) for entry in decoded for document in _parse_documents([entry])
    ]


def _document_number(document: Any) -> str | None:
    number = document.get("number") if isinstance(document, Mapping) else None
    return str(number) if isinstance(number, (str, int)) and not isinstance(number, bool) else None


def _parse_documents(value: Any) -> list[Document]:
    """Read a list of texts, or of objects with a text. Objects without one are skipped."""
    decoded = parse_json(value) if isinstance(value, str) else value
    if isinstance(decoded, str):
        decoded = [decoded]
    return list(_iterate_documents(decoded)) if isinstance(decoded, Sequence) and not isinstance(decoded, bytes) else []


def _iterate_documents(entries: Sequence[Any]) -> Iterator[Document]:
    for entry in entries:
        if isinstance(entry, str) and entry:
            yield Document(None, entry, None)
        elif isinstance(entry, Mapping) and (text := _first_text(entry, "content", "text", "page_content")):
            name = entry.get("id", entry.get("title"))
            score = entry.get("score", entry.get("retrieval_score"))
            fine = isinstance(score, (int, float)) and math.isfinite(score)
            yield Document(None if name is None else str(name), text, float(score) if fine else None)


def _parse_tokens(value: Any) -> tuple[Token, ...] | None:
    """Read `[{token, logprob, top_logprobs}]` as the OpenAI API returns it, bare or under `content`.

    None if one token is broken: half an answer's tokens would pass for all of them.
    """
    decoded = parse_json(value) if isinstance(value, str) else value
    decoded = decoded.get("content") if isinstance(decoded, Mapping) else decoded
    if not isinstance(decoded, Sequence) or isinstance(decoded, (str, bytes)) or not decoded:
        return None
    try:
        return tuple(
            [
                Token(*_parse_logprob(entry), tuple(_parse_logprob(top) for top in entry.get("top_logprobs") or ()))
                for entry in decoded
            ]
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _parse_logprob(entry: Any) -> tuple[str, float]:
    logprob = float(entry["logprob"])
    if not isinstance(entry["token"], str) or not math.isfinite(logprob):
        raise ValueError
    return entry["token"], logprob


def _parse_schema(value: Any) -> Mapping[str, Any] | bool | None:
    decoded = parse_json(value) if isinstance(value, str) else value
    return decoded if isinstance(decoded, (Mapping, bool)) else None


def _select_scalars(attributes: Mapping[str, Any], own_names: set[str]) -> dict[str, Scalar]:
    scalars: dict[str, Scalar] = {}
    for key, value in attributes.items():
        if key.startswith(_CONTENT) or key in own_names or not isinstance(value, (str, int, float, bool)):
            continue
        if not (isinstance(value, str) and len(value) > MAX_ATTRIBUTE_LENGTH) and len(scalars) < MAX_ATTRIBUTES:
            scalars[key] = value
    return scalars


def _openinference_text(attributes: Mapping[str, Any], side: str) -> str | None:
    """OpenInference's `input.value` or `output.value` if it is plain text."""
    if attributes.get(f"{side}.mime_type", "text/plain") != "text/plain":
        return None
    return _text_or_none(attributes.get(f"{side}.value"))


def _first_text(attributes: Mapping[str, Any], *keys: str) -> str | None:
    return next((text for key in keys if (text := _text_or_none(attributes.get(key)))), None)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None

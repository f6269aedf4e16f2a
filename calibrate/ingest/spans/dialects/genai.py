"""OpenTelemetry GenAI: semantic-conventions-genai, gen-ai-spans and gen-ai-events; the events of v1.36 and before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrate.ingest.spans.content import Evaluation, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.fields.documents import parse_documents
from calibrate.ingest.spans.fields.logprobs import parse_tokens
from calibrate.ingest.spans.fields.messages import last_of_user, messages
from calibrate.ingest.spans.fields.schema import parse_schema
from calibrate.ingest.spans.fields.values import first_text, is_list, number_or_none, parse_json, text_or_none
from calibrate.ingest.spans.record import SpanEvent

KIND = "gen_ai.operation.name"
KINDS: Mapping[str, Holds] = {
    "chat": "answer",
    "text_completion": "answer",
    "generate_content": "answer",
    "retrieval": "sources",
    "execute_tool": "tool",
}
HEADS = frozenset(("gen_ai",))
ANSWERS = frozenset(("gen_ai.output.messages",))
SOURCES = frozenset(("gen_ai.retrieval.documents",))
EVALUATION = "gen_ai.evaluation.result"

_DETAILS = frozenset(
    ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
)
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
OURS = "touchstone.thresholds.version"  # on the events that Touchstone itself sends


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    chat = messages(attributes.get("gen_ai.input.messages"), "user")
    output = attributes.get("gen_ai.output.messages")
    answered = messages(output, "assistant")
    if not chat:
        chat = messages(attributes.get("gen_ai.prompt"), "user", sure=False)
    if not answered:
        answered = messages(attributes.get("gen_ai.completion"), "assistant", sure=False)
    return SpanContent(
        question=last_of_user(chat),
        query=text_or_none(attributes.get("gen_ai.retrieval.query.text")),
        answers=tuple([message.text for message in answered]),
        documents=tuple(parse_documents(attributes.get("gen_ai.retrieval.documents"))),
        tokens=parse_tokens(attributes.get("gen_ai.response.logprobs")) or _tokens_of_messages(output),
        schema=parse_schema(attributes.get("gen_ai.request.structured_output_schema")),
        model=first_text(attributes, "gen_ai.response.model", "gen_ai.request.model"),
        operation=text_or_none(attributes.get(KIND)),
        response_id=text_or_none(attributes.get("gen_ai.response.id")),
    )


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return attributes.get("gen_ai.input.messages")


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return attributes.get("gen_ai.tool.call.result")


def with_events(attributes: Mapping[str, Any], events: Sequence[SpanEvent]) -> Mapping[str, Any]:
    """Add the attributes of events that carry content, as older instrumentations write it."""
    if not events:
        return attributes
    merged = dict(attributes)
    inputs: list[Any] = []
    outputs: list[Any] = []
    for event in events:
        values = event.attributes
        if event.name in _DETAILS:
            merged = {**values, **merged}
        elif role := _EVENT_ROLES.get(event.name):
            content = parse_json(values.get("gen_ai.event.content", values.get("message", values.get("content"))))
            messages_of_event = outputs if event.name == "gen_ai.choice" else inputs
            messages_of_event.append(_message_of_event(content, role, values))
    for key, by_event in (("gen_ai.input.messages", inputs), ("gen_ai.output.messages", outputs)):
        if by_event:
            merged.setdefault(key, by_event)
    return merged


def evaluations(events: Sequence[SpanEvent]) -> tuple[Evaluation, ...]:
    """Read what evaluators said of an answer. Touchstone's own results are left out: it scores again, or knows them."""
    return tuple(
        [
            Evaluation(
                name,
                number_or_none(event.attributes.get("gen_ai.evaluation.score.value")),
                text_or_none(event.attributes.get("gen_ai.evaluation.score.label")),
                text_or_none(event.attributes.get("gen_ai.evaluation.explanation")),
                text_or_none(event.attributes.get("gen_ai.response.id")),
            )
            for event in events
            if event.name == EVALUATION
            and OURS not in event.attributes
            and (name := text_or_none(event.attributes.get("gen_ai.evaluation.name")))
        ]
    )


def _message_of_event(content: Any, role: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write the message of an event as a span has it. A choice has the message within."""
    inner = content.get("message") if isinstance(content, Mapping) else None
    body = inner if isinstance(inner, Mapping) else content
    if not isinstance(body, Mapping):
        return {"role": role, "content": content, "id": values.get("id")}
    whole = content if isinstance(content, Mapping) else {}
    return {**body, "role": body.get("role") or role, "logprobs": whole.get("logprobs")}


def _tokens_of_messages(output: Any) -> Any:
    decoded = parse_json(output) if not isinstance(output, str) or "logprobs" in output else None
    first = decoded[0] if is_list(decoded) and decoded else None
    return parse_tokens(first.get("logprobs")) if isinstance(first, Mapping) else None

"""The AI SDK of Vercel: a span for each call of a model, within one for the whole operation, which knows the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.fields.messages import last_of_user, messages
from calibrate.ingest.spans.fields.schema import parse_schema
from calibrate.ingest.spans.fields.values import first_text, parse_json, text_or_none

KIND = "ai.operationId"
KINDS: Mapping[str, Holds] = {
    "ai.generateText.doGenerate": "answer",
    "ai.streamText.doStream": "answer",
    "ai.generateObject.doGenerate": "answer",
    "ai.streamObject.doStream": "answer",
    "ai.generateText": "sources",
    "ai.streamText": "sources",
    "ai.generateObject": "sources",
    "ai.streamObject": "sources",
    "ai.toolCall": "tool",
}
HEADS = frozenset(("ai",))
ANSWERS: frozenset[str] = frozenset()
SOURCES: frozenset[str] = frozenset()


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    operation = text_or_none(attributes.get(KIND))
    if operation is None:
        return SILENT
    answer = first_text(attributes, "ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object")
    return SpanContent(
        question=_question(attributes),
        answers=(answer,) if answer is not None and KINDS.get(operation) == "answer" else (),
        schema=parse_schema(attributes.get("ai.schema")),
        model=first_text(attributes, "ai.response.model", "ai.model.id"),
        operation=first_text(attributes, "ai.telemetry.functionId") or operation,
        response_id=text_or_none(attributes.get("ai.response.id")),
    )


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return attributes.get("ai.prompt.messages")


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return attributes.get("ai.toolCall.result")


def _question(attributes: Mapping[str, Any]) -> str | None:
    """The last message of the call, or the prompt of the whole operation: a text, or messages."""
    question = last_of_user(messages(attributes.get("ai.prompt.messages"), "user"))
    if question is not None:
        return question
    prompt = parse_json(attributes.get("ai.prompt"))
    if not isinstance(prompt, Mapping):
        return text_or_none(prompt)
    given = prompt.get("messages", prompt.get("prompt"))
    return text_or_none(given) or last_of_user(messages(given, "user"))

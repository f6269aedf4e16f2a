"""The OpenInference specification, by Arize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.fields.documents import parse_flat_documents
from calibrate.ingest.spans.fields.logprobs import tokens_of_reply
from calibrate.ingest.spans.fields.messages import Message, last_of_user
from calibrate.ingest.spans.fields.schema import schema_of_request
from calibrate.ingest.spans.fields.values import text_or_none, unflatten

KIND = "openinference.span.kind"
KINDS: Mapping[str, Holds] = {"LLM": "answer", "RETRIEVER": "sources", "RERANKER": "sources", "TOOL": "tool"}
HEADS = frozenset(("openinference", "llm", "input", "output", "retrieval", "reranker"))
ANSWERS: frozenset[str] = frozenset()
SOURCES = frozenset(("retrieval.documents.0.document.content", "retrieval.documents.0.document.score"))


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    question = last_of_user(_read_messages(attributes, "llm.input_messages", "user"))
    answers = [message.text for message in _read_messages(attributes, "llm.output_messages", "assistant")]
    given, output = _read_plain(attributes, "input"), _read_plain(attributes, "output")
    ranked = parse_flat_documents(attributes, "reranker.output_documents")
    answers = answers or ([output] if output else [])
    return SpanContent(
        question=question or given,
        query=given,
        answers=tuple(answers),
        documents=tuple(ranked or parse_flat_documents(attributes, "retrieval.documents")),
        reranked=bool(ranked),
        tokens=tokens_of_reply(attributes.get("output.value"), answers[0] if answers else None),
        schema=schema_of_request(attributes.get("llm.invocation_parameters")),
        model=text_or_none(attributes.get("llm.model_name")),
    )


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return [_unflatten_message(entry) for entry in unflatten(attributes, "llm.input_messages")]


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return attributes.get("output.value")


def _unflatten_message(entry: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": call.get("tool_call.id"), "name": call.get("tool_call.function.name")}
        for call in unflatten(entry, "message.tool_calls")
    ]
    return {name.removeprefix("message."): value for name, value in entry.items()} | {"tool_calls": calls}


def _read_messages(attributes: Mapping[str, Any], prefix: str, role: str) -> list[Message]:
    """Read `llm.input_messages.0.message.content`, or `.message.contents.0.message_content.text`."""
    chat = []
    for entry in unflatten(attributes, prefix):
        parts = [text_or_none(part.get("message_content.text")) for part in unflatten(entry, "message.contents")]
        text = text_or_none(entry.get("message.content")) or "\n".join(part for part in parts if part)
        chat.append(Message(str(entry.get("message.role", role)), text))
    return [entry for entry in chat if entry.text]


def _read_plain(attributes: Mapping[str, Any], side: str) -> str | None:
    """Read `input.value` or `output.value` if it is plain text."""
    if attributes.get(f"{side}.mime_type", "text/plain") != "text/plain":
        return None
    return text_or_none(attributes.get(f"{side}.value"))

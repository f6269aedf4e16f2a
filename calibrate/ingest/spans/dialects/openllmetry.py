"""OpenLLMetry and the Traceloop SDK: messages with an index in older versions, and what each step took and gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.fields.documents import parse_documents
from calibrate.ingest.spans.fields.logprobs import parse_tokens, tokens_of_reply
from calibrate.ingest.spans.fields.messages import last_of_user, messages, parts_of
from calibrate.ingest.spans.fields.values import first_text, parse_json, unflatten
from calibrate.types import Token

KIND = "traceloop.span.kind"
KINDS: Mapping[str, Holds] = {"tool": "tool"}
HEADS = frozenset(("gen_ai", "traceloop"))
ANSWERS = frozenset(("gen_ai.completion.0.content",))
SOURCES = frozenset(("traceloop.entity.output",))

_MARKS = frozenset(
    [
        "traceloop.entity.output",
        "traceloop.entity.input",
        "gen_ai.prompt.0.role",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.role",
        "gen_ai.completion.0.content",
    ]
)


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    if _MARKS.isdisjoint(attributes):
        return SILENT
    replies = _chat(attributes, "gen_ai.completion")
    return SpanContent(
        question=last_of_user(messages(_chat(attributes, "gen_ai.prompt"), "user")),
        query=_query(attributes),
        answers=tuple([message.text for message in messages(replies, "assistant")]),
        documents=tuple(parse_documents(_documents(attributes))),
        tokens=parse_tokens(replies[0].get("logprobs")) if replies else _tokens_of_chain(attributes),
    )


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return _chat(attributes, "gen_ai.prompt")


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    output = parse_json(attributes.get("traceloop.entity.output"))
    return output.get("output", output) if isinstance(output, Mapping) else output


def _chat(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Rebuild messages: the content of one may be the JSON of its parts."""
    return [
        {name: parts_of(value) if name == "content" else value for name, value in message.items()}
        for message in unflatten(attributes, prefix)
    ]


def _documents(attributes: Mapping[str, Any]) -> Any:
    output = attributes.get("traceloop.entity.output")
    if not isinstance(output, str) or '"documents"' not in output:
        return None
    decoded = parse_json(output)
    return decoded.get("documents") if isinstance(decoded, Mapping) else None


def _tokens_of_chain(attributes: Mapping[str, Any]) -> tuple[Token, ...] | None:
    """Read the log-probabilities from what a chain gave: the message of the model, where that is its last step."""
    output = attributes.get("traceloop.entity.output")
    if not isinstance(output, str) or '"logprobs"' not in output:
        return None
    decoded = parse_json(output)
    message = decoded.get("outputs") if isinstance(decoded, Mapping) else None
    return tokens_of_reply({"generations": [{"message": message}]}, None)


def _query(attributes: Mapping[str, Any]) -> str | None:
    if attributes.get("gen_ai.operation.name") != "vector_db_retrieve":
        return None
    given = parse_json(attributes.get("traceloop.entity.input"))
    return first_text(given, "query", "input") if isinstance(given, Mapping) else None

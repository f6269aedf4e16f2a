"""Google's Agent Development Kit: the request and the response of each call of a model as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.dialects.logged import messages_of, read_logged, result_of

KIND = "gen_ai.operation.name"
KINDS: Mapping[str, Holds] = {}
HEADS = frozenset(("gcp",))
ANSWERS = frozenset(("gcp.vertex.agent.llm_response",))
SOURCES: frozenset[str] = frozenset()

_REQUEST, _RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    if _RESPONSE not in attributes:
        return SILENT
    return read_logged("answer", attributes.get(_REQUEST), attributes.get(_RESPONSE), None)


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return messages_of(attributes.get(_REQUEST))


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return result_of(attributes.get("gcp.vertex.agent.tool_response"))

"""Langfuse's SDK, whose observations are spans of OpenTelemetry since its version 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.dialects.logged import messages_of, read_logged, result_of
from calibrate.ingest.spans.fields.values import first_text

KIND = "langfuse.observation.type"
KINDS: Mapping[str, Holds] = {"generation": "answer", "retriever": "sources", "tool": "tool"}
HEADS = frozenset(("langfuse",))
ANSWERS: frozenset[str] = frozenset()
SOURCES: frozenset[str] = frozenset()

_INPUT, _OUTPUT = "langfuse.observation.input", "langfuse.observation.output"


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    if _INPUT not in attributes and _OUTPUT not in attributes:
        return SILENT
    model = first_text(attributes, "langfuse.observation.model.name")
    return read_logged(_holds(attributes), attributes.get(_INPUT), attributes.get(_OUTPUT), model)


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return messages_of(attributes.get(_INPUT)) if _holds(attributes) == "answer" else None


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return result_of(attributes.get(_OUTPUT))


def _holds(attributes: Mapping[str, Any]) -> Holds | None:
    return KINDS.get(str(attributes.get(KIND)))

"""LangSmith's own export by OpenTelemetry: inputs and outputs of a run as JSON in `gen_ai.prompt` and `.completion`."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.dialects.logged import messages_of, read_logged, result_of
from calibrate.ingest.spans.fields.values import first_text

KIND = "langsmith.span.kind"
KINDS: Mapping[str, Holds] = {"llm": "answer", "retriever": "sources", "tool": "tool"}
HEADS = frozenset(("langsmith",))
ANSWERS: frozenset[str] = frozenset()
SOURCES: frozenset[str] = frozenset()

_INPUT, _OUTPUT = "gen_ai.prompt", "gen_ai.completion"


def wrote(names: Container[str]) -> bool:
    """Tell whether LangSmith's client wrote the span: what these attributes hold is no message of a convention."""
    return KIND in names and (_INPUT in names or _OUTPUT in names)


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    if not wrote(attributes):
        return SILENT
    model = first_text(attributes, "gen_ai.response.model", "gen_ai.request.model")
    return read_logged(_holds(attributes), attributes.get(_INPUT), attributes.get(_OUTPUT), model)


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return messages_of(attributes.get(_INPUT)) if wrote(attributes) and _holds(attributes) == "answer" else None


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return result_of(attributes.get(_OUTPUT)) if wrote(attributes) else None


def _holds(attributes: Mapping[str, Any]) -> Holds | None:
    return KINDS.get(str(attributes.get(KIND)))

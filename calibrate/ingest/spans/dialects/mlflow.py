"""MLflow's spans as its export by OpenTelemetry writes them: each attribute as JSON, also a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.dialects.logged import messages_of, read_logged, result_of
from calibrate.ingest.spans.logged import chat

INPUTS, OUTPUTS, KIND = "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.spanType"
HOLDS: Mapping[str, Holds] = {
    "CHAT_MODEL": "answer",
    "LLM": "answer",
    "RETRIEVER": "sources",
    "RERANKER": "sources",
    "TOOL": "tool",
}
"""What MLflow's types of spans hold."""
KINDS: Mapping[str, Holds] = {**HOLDS, **{f'"{kind}"': holds for kind, holds in HOLDS.items()}}
HEADS = frozenset(("mlflow",))
ANSWERS: frozenset[str] = frozenset()
SOURCES: frozenset[str] = frozenset()

_MODELS = ("mlflow.llm.model", "gen_ai.response.model", "gen_ai.request.model", "model_name", "model")


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    if INPUTS not in attributes and OUTPUTS not in attributes:
        return SILENT
    given, output = decoded(attributes.get(INPUTS)), decoded(attributes.get(OUTPUTS))
    return read_logged(_holds(attributes), given, output, model_of(attributes, given, output))


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned."""
    return messages_of(decoded(attributes.get(INPUTS))) if _holds(attributes) == "answer" else None


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return result_of(decoded(attributes.get(OUTPUTS)))


def decoded(value: Any) -> Any:
    """Decode a text that is JSON of an object, a list or a text."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        listed = chat.decode(f"[{value}]")
        return listed[0] if isinstance(listed, list) and len(listed) == 1 else value
    return chat.decode(value)


def model_of(attributes: Mapping[str, Any], given: Any, output: Any) -> str | None:
    """The model that answered, else the one that was called."""
    places = [chat.decode(place) for place in (attributes, output, given)]
    named = (decoded(place.get(name)) for place in places if isinstance(place, Mapping) for name in _MODELS)
    return next((name for name in named if isinstance(name, str) and name), None)


def _holds(attributes: Mapping[str, Any]) -> Holds | None:
    return KINDS.get(str(attributes.get(KIND)))

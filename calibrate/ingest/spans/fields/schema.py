"""Find the JSON Schema that an answer was to follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.fields.values import parse_json

Schema = Mapping[str, Any] | bool

_PLACES = (
    ("response_format", "json_schema", "schema"),  # chat completions of the OpenAI API
    ("text", "format", "schema"),  # its responses
    ("response_format", "schema"),
    ("ls_structured_output_format", "schema", "function", "parameters"),  # LangChain
    ("ls_structured_output_format", "schema"),
    ("response_schema",),  # Google's API
    ("response_json_schema",),
    ("generation_config", "response_schema"),
    ("format",),  # Ollama
)


def parse_schema(value: Any) -> Schema | None:
    """Read a schema, JSON text or decoded."""
    decoded = parse_json(value)
    return decoded if isinstance(decoded, (Mapping, bool)) else None


def schema_of_request(value: Any) -> Schema | None:
    """Read the schema from the parameters of a request to a model.

    Parameters
    ----------
    value : object
        JSON text or decoded.

    Returns
    -------
    mapping, bool or None
    """
    parameters = parse_json(value)
    for place in _PLACES:
        inner = parameters
        for key in place:
            inner = parse_json(inner.get(key)) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping) and inner:
            return inner
    return None

"""Mozilla's any-agent: the kinds of the GenAI conventions, with names of its own for what a model wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.fields.values import is_list, parse_json, text_or_none

KIND = "gen_ai.operation.name"
KINDS: Mapping[str, Holds] = {"call_llm": "answer"}
HEADS = frozenset(("gen_ai",))
ANSWERS: frozenset[str] = frozenset()
SOURCES: frozenset[str] = frozenset()

_FINAL = "final_output"  # the tool by which some frameworks give the answer in the wanted form


def read(attributes: Mapping[str, Any]) -> SpanContent:
    """Read what the attributes say by this convention."""
    if attributes.get(KIND) != "call_llm":
        return SILENT
    answer = _answer(attributes.get("gen_ai.output"))
    return SILENT if answer is None else SpanContent(answers=(answer,))


def messages_with_results(attributes: Mapping[str, Any]) -> Any:
    """The messages that may tell the model what tools returned: the GenAI conventions name them."""
    return None


def result_of_tool(attributes: Mapping[str, Any]) -> Any:
    """What a tool returned, on its own span."""
    return attributes.get("gen_ai.output")


def _answer(output: Any) -> str | None:
    """Read what the model wrote. A list of tool calls is no answer, but for the call that gives the final one."""
    decoded = parse_json(output)
    if not is_list(decoded) or not all(isinstance(call, Mapping) and "tool.name" in call for call in decoded):
        return text_or_none(output)
    for call in decoded:
        if call["tool.name"] == _FINAL:
            given = parse_json(call.get("tool.args"))
            return text_or_none(given.get("answer")) if isinstance(given, Mapping) else None
    return None

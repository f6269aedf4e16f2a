"""The short attributes of a span that become those of a trace, to filter, group and sample by."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set
from typing import Any

from calibrate.ingest.spans.content import Scalar
from calibrate.ingest.spans.fields.values import parse_json

MAX_LENGTH = 200
MAX_ATTRIBUTES = 64
MAX_OWN_LENGTH = 1000
"""Of a text that the program itself gives for an attribute, as in a record."""

# What says what was asked, found, answered or measured is content, not a name for a kind of traffic.
_CONTENT = (
    "gen_ai.",
    "llm.",
    "input.",
    "output.",
    "retrieval.",
    "reranker.",
    "openinference.",
    "touchstone.",
    "traceloop.entity.",
    "tool_call.",
    "ai.prompt",
    "ai.response",
    "ai.result",
    "ai.request",
    "ai.usage",
    "ai.toolCall",
    "ai.settings",
    "ai.schema",
    "ai.stream",
    "ai.value",
    "ai.embedding",
    "langfuse.observation.",
    "langfuse.trace.input",
    "langfuse.trace.metadata.",
    "langfuse.trace.output",
    "langsmith.span.",
    "langsmith.metadata.",
    "mlflow.",
    "gcp.vertex.agent.",
)
_TO_FILTER_BY = frozenset(
    (
        "gen_ai.prompt.name",
        "gen_ai.agent.name",
        "llm.prompt_template.version",
        "langfuse.observation.prompt.name",
        "langfuse.observation.prompt.version",
        "langfuse.observation.level",
    )
)
# What the program itself named, but for what the client says of itself.
_METADATA = re.compile(r"langfuse\.(?:observation|trace)\.metadata\.|langsmith\.metadata\.(?!ls_|LANGSMITH_)")
_OF_PROCESS = {
    "service.name": ("service.name",),
    "service.version": ("service.version",),
    "deployment.environment.name": ("deployment.environment.name", "deployment.environment"),
}
_NAMES = {
    "session.id": (
        "session.id",
        "gen_ai.conversation.id",
        "langfuse.session.id",
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
        "ai.telemetry.metadata.sessionId",
        "langsmith.metadata.session_id",
        "langsmith.metadata.thread_id",
        "gcp.vertex.agent.session_id",
    ),
    "user.id": (
        "user.id",
        "enduser.id",
        "langfuse.user.id",
        "traceloop.association.properties.user_id",
        "ai.telemetry.metadata.userId",
        "langsmith.metadata.user_id",
    ),
    "prompt_version": (
        "prompt_version",
        "llm.prompt_template.version",
        "langfuse.observation.prompt.version",
    ),
}
_SPELLINGS = frozenset[str]().union(*_NAMES.values())


def select_attributes(attributes: Mapping[str, Any], leave_out: Set[str]) -> dict[str, Scalar]:
    """Select what a trace keeps of a span's attributes.

    Parameters
    ----------
    attributes : mapping
        Of the span.
    leave_out : set of str
        Attributes that hold fields.

    Returns
    -------
    dict
        Short texts, numbers and booleans, at most 64. `session.id`, `user.id` and `prompt_version` have these names,
        whatever the convention calls them, and what clients keep as metadata those that the program gave.
    """
    scalars = {} if _SPELLINGS.isdisjoint(attributes) else _select(attributes, _NAMES)
    for key, value in attributes.items():
        if len(scalars) >= MAX_ATTRIBUTES:
            break
        if key in leave_out or not _is_short(value):
            continue
        if not key.startswith(_CONTENT) or key in _TO_FILTER_BY:
            scalars.setdefault(key, value)
        elif metadata := _METADATA.match(key):
            scalars.setdefault(key[metadata.end() :], value)
    return scalars


def select_of_process(resource: Mapping[str, Any]) -> dict[str, Scalar]:
    """Select what a trace keeps of what a span says of its process: service, its version, and where it is deployed."""
    selected = _select(resource, _OF_PROCESS) if resource else {}
    if str(selected.get("service.name", "")).startswith("unknown_service"):  # what SDKs say of a program without a name
        del selected["service.name"]
    return selected


def parse_own_attributes(value: Any) -> dict[str, Scalar]:
    """Read the attributes that the program itself gives, as one object.

    Parameters
    ----------
    value : object
        JSON text or decoded.

    Returns
    -------
    dict
        Texts of at most 1,000 characters, numbers and booleans.
    """
    decoded = parse_json(value)
    if not isinstance(decoded, Mapping):
        return {}
    return {
        str(key): each
        for key, each in decoded.items()
        if _is_short(each) or (isinstance(each, str) and len(each) <= MAX_OWN_LENGTH)
    }


def _select(attributes: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, Scalar]:
    """The first short value of the spellings of each name."""
    by_name: dict[str, Scalar] = {}
    for name, spellings in names.items():
        value = next((attributes[key] for key in spellings if _is_short(attributes.get(key))), None)
        if value is not None:
            by_name[name] = value
    return by_name


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_LENGTH
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))

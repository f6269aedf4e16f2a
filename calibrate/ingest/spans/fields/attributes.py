"""The short attributes of a span that become those of a trace, to filter, group and sample by."""

from __future__ import annotations

import math
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
)
_NAMES = {
    "session.id": (
        "session.id",
        "gen_ai.conversation.id",
        "langfuse.session.id",
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.thread_id",
        "ai.telemetry.metadata.sessionId",
    ),
    "user.id": (
        "user.id",
        "enduser.id",
        "langfuse.user.id",
        "traceloop.association.properties.user_id",
        "ai.telemetry.metadata.userId",
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
        Short texts, numbers and booleans, at most 64. `session.id` and `user.id` have these names, whatever the
        convention calls them.
    """
    scalars: dict[str, Scalar] = {}
    for name, spellings in _NAMES.items() if not _SPELLINGS.isdisjoint(attributes) else ():
        value = next((attributes[key] for key in spellings if _is_short(attributes.get(key))), None)
        if value is not None:
            scalars[name] = value
    for key, value in attributes.items():
        if len(scalars) >= MAX_ATTRIBUTES:
            break
        if not key.startswith(_CONTENT) and key not in leave_out and key not in scalars and _is_short(value):
            scalars[key] = value
    return scalars


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


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_LENGTH
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))

"""Read chat messages from the forms that spans carry: JSON text, structured values, keys flattened with an index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Message(NamedTuple):
    role: str
    text: str


def messages(value: Any, role: str, *, sure: bool = True) -> list[Message]:
    """Read chat messages.

    Parameters
    ----------
    value : object
        JSON text, a message, or a list of messages.
    role : str
        Of a message that names none.
    sure : bool
        If False, the value may also be the plain text of one message, even JSON, as structured output is.

    Returns
    -------
    list of Message
        Those with text, in order.
    """
    decoded = parse_json(value) if isinstance(value, str) else value
    if isinstance(decoded, Mapping):
        decoded = [decoded]
    items = decoded if isinstance(decoded, Sequence) and not isinstance(decoded, (str, bytes)) else []
    keys = ("role", "parts", "message") if not sure else ("role", "parts", "message", "content")
    if items and all(isinstance(item, Mapping) and any(key in item for key in keys) for item in items):
        return [message for item in items if (message := _message(item, role)).text]
    return [Message(role, value)] if isinstance(value, str) and value.strip() and not (sure and items) else []


def unflatten(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Rebuild the objects of a flattened list: `prefix.0.name`, `prefix.1.name`, ….

    Parameters
    ----------
    attributes : mapping
        Of a span.
    prefix : str
        Without the last dot.

    Returns
    -------
    list of dict
        In the order of their index.
    """
    objects: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            index, _, name = key[len(prefix) + 1 :].partition(".")
            if name and index.isdecimal():
                objects.setdefault(int(index), {})[name] = value
    return [objects[index] for index in sorted(objects)]


def parse_json(text: str) -> Any:
    """Parse a text that may be a JSON object or list.

    Parameters
    ----------
    text : str

    Returns
    -------
    object
        The value; the text itself if it is not JSON.
    """
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _message(item: Mapping[str, Any], role: str) -> Message:
    inner = item.get("message")
    if isinstance(inner, Mapping):  # a choice, as the API returns it
        item = inner
    body = item.get("parts", item.get("content", inner))
    return Message(str(item.get("role") or role), _text(body))


def _text(body: Any) -> str:
    """Join the text parts, a line each. Tool calls, pictures and reasoning are no part of the answer."""
    if isinstance(body, str):
        return body
    if not isinstance(body, Sequence) or isinstance(body, bytes):
        return ""
    parts = [part if isinstance(part, str) else _part(part) for part in body]
    return "\n".join(part for part in parts if part)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type", "text") not in ("text", "output_text", "input_text"):
        return ""
    text = part.get("content", part.get("text"))
    return text if isinstance(text, str) else ""

"""Chat messages in the spellings that spans carry: a JSON text, structured values, keys flattened with an index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Message(NamedTuple):
    role: str
    text: str


def messages(value: Any, role: str, *, sure: bool = True) -> list[Message]:
    """The messages that have text, in order; `role` is that of one that names none.

    Not `sure`: the value may as well be the plain text of one message, even one that is JSON, as structured output is.
    """
    read = parsed(value) if isinstance(value, str) else value
    if isinstance(read, Mapping):
        read = [read]
    given = read if isinstance(read, Sequence) and not isinstance(read, (str, bytes)) else []
    known = ("role", "parts", "message") if not sure else ("role", "parts", "message", "content")
    if given and all(isinstance(one, Mapping) and any(key in one for key in known) for one in given):
        return [said for one in given if (said := _message(one, role)).text]
    return [Message(role, value)] if isinstance(value, str) and value.strip() and not (sure and given) else []


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The objects of a list that was flattened: `prefix.0.name`, `prefix.1.name` … in the order of their index."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix):
            index, _, name = key[len(prefix) + 1 :].partition(".")
            if name and index.isdecimal():
                found.setdefault(int(index), {})[name] = value
    return [found[index] for index in sorted(found)]


def parsed(text: str) -> Any:
    """What the JSON says; the text itself where it is none."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _message(one: Mapping[str, Any], role: str) -> Message:
    inner = one.get("message")
    if isinstance(inner, Mapping):  # a choice, as the API answers it
        one = inner
    body = one.get("parts", one.get("content", inner))
    return Message(str(one.get("role") or role), _text(body))


def _text(body: Any) -> str:
    """The text parts, a line each; tool calls, pictures and what the model thought to itself are no answer."""
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

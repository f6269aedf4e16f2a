"""Read chat messages from the forms that spans carry: JSON text or structured values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from calibrate.ingest.spans.content import Document
from calibrate.ingest.spans.fields.values import first_text, is_list, parse_json

_TOOL_PARTS = ("tool_call_response", "tool_result", "tool-result", "function_call_output", "tool_return")
_TEXT_PARTS = ("text", "output_text", "input_text", "refusal")
_OTHER_PARTS = (
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document"),
    *("tool_use", "tool_call", "server_tool_use", "thinking", "redacted_thinking", "reasoning"),
)
_PARTS = (*_TEXT_PARTS, *_OTHER_PARTS, *_TOOL_PARTS)
_RESULTS = ("response", "result", "output", "content", "text", "value")


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
    decoded = parse_json(value)
    if isinstance(decoded, Mapping):
        decoded = [decoded]
    items = decoded if is_list(decoded) else []
    keys = ("role", "parts", "message") if not sure else ("role", "parts", "message", "content")
    if items and all(isinstance(item, Mapping) and any(key in item for key in keys) for item in items):
        return [message for item in items if (message := _message(item, role)).text.strip()]
    return [Message(role, value)] if isinstance(value, str) and value.strip() and not (sure and items) else []


def parts_of(value: Any) -> Any:
    """Decode a message's content where it is the JSON of its parts; else return it as it is, as structured output is.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
    """
    decoded = parse_json(value)
    kinds = [part.get("type") if isinstance(part, Mapping) else None for part in decoded] if is_list(decoded) else []
    return decoded if kinds and all(kind in _PARTS for kind in kinds) else value


def last_of_user(chat: Sequence[Message]) -> str | None:
    """Return the text of the user's last message."""
    return next((message.text for message in reversed(chat) if message.role in ("user", "human")), None)


def tool_results(value: Any) -> list[Document]:
    """Read what tools returned, as the messages tell it to the model.

    Parameters
    ----------
    value : object
        JSON text, or a list of messages: of the role `tool`, or with parts that are results.

    Returns
    -------
    list of Document
        Named by the tool, or by the call where only that is named.
    """
    decoded = parse_json(value)
    items = [item for item in decoded if isinstance(item, Mapping)] if is_list(decoded) else []
    names = _names_of_calls(items)
    return [document for item in items for document in _results_of(item, names)]


def result_text(value: Any) -> str:
    """Write what a tool returned as a text: JSON where it is no text, nothing where that holds nothing."""
    text = _result_text(value).strip()
    return "" if text in ("{}", "[]", "null", "None") else text


def _result_text(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("value"), str):  # {"type": "text", "value": …}
        return str(value["value"])
    if value is None or isinstance(value, str):
        return value or ""
    text = _text(value)
    if text:
        return text
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return ""


def _names_of_calls(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Find the names of the tools that the model called, by the id of the call."""
    names: dict[str, str] = {}
    for item in items:
        parts = item.get("parts", item.get("content"))
        for call in (*_mappings(item.get("tool_calls")), *_mappings(parts)):
            name = call.get("name", call.get("toolName"))
            function = call.get("function")
            name = function.get("name") if name is None and isinstance(function, Mapping) else name
            called = first_text(call, "id", "toolCallId", "call_id")
            if called and isinstance(name, str):
                names[called] = name
    return names


def _results_of(item: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Document]:
    parts = item.get("parts", item.get("content"))
    results = [part for part in _mappings(parts) if part.get("type") in _TOOL_PARTS]
    if not results and item.get("role") in ("tool", "function"):
        results = [{**item, "content": item.get("content", parts)}]
    for result in results:
        value = next((result[key] for key in _RESULTS if result.get(key) is not None), None)
        called = first_text(result, "id", "tool_call_id", "toolCallId", "tool_use_id", "call_id")
        called = called or first_text(item, "tool_call_id", "id")
        name = first_text(result, "name", "toolName") or first_text(item, "name") or names.get(called or "") or called
        if text := result_text(value):
            yield Document(name, text, None)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if is_list(value) else []


def _message(item: Mapping[str, Any], role: str) -> Message:
    inner = item.get("message")
    if isinstance(inner, Mapping):  # a choice, as the API returns it
        item = inner
    body = item.get("parts", item.get("content", inner))
    return Message(str(item.get("role") or role), _text(body) or _text(item.get("refusal")))


def _text(body: Any) -> str:
    """Join the text parts, a line each. Tool calls, pictures and reasoning are no part of the answer."""
    if isinstance(body, str):
        return body
    if not is_list(body):
        return ""
    parts = [part if isinstance(part, str) else _part(part) for part in body]
    return "\n".join(part for part in parts if part)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type", "text") not in _TEXT_PARTS:
        return ""
    text = next((part[key] for key in ("content", "text", "refusal") if part.get(key) is not None), None)
    return text if isinstance(text, str) else ""

"""Read what went into a model and what came out, in the many forms in which programs hand it to their tracing.

A chat is a list of messages as OpenAI, Anthropic, Gemini, LangChain, LlamaIndex, the Vercel AI SDK or the GenAI
conventions of OpenTelemetry write them, or the request or response around it, or plain text. All of it may be JSON in
a text, or what Python prints of a dictionary.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_LITERAL = 1_000_000
"""Longest text that is parsed as Python, in characters."""

_DEPTH = 8  # envelopes around envelopes
_USERS = frozenset(("user", "human"))
_ASSISTANTS = frozenset(("assistant", "ai", "model", "bot", "aimessagechunk"))
_TOOLS = frozenset(("tool", "function"))
_SYSTEMS = frozenset(("system", "developer"))
_CLASSES = {
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
_TEXT_PARTS = frozenset(("text", "output_text", "input_text", "TextBlock", "refusal"))
_CALL_TYPES = frozenset(("tool_use", "tool_call", "tool-call", "function", "function_call", "functionCall"))
_RESULT_TYPES = frozenset(("tool_result", "tool-result", "tool_call_response", "function_call_output"))
_CALL_KEYS = ("tool_calls", "toolCalls", "function_call", "functionCall", "function")
_REQUESTS = ("messages", "contents", "new_message", "input", "inputs", "prompt", "prompts", "question", "query", "text")
_ANSWERS = ("output_text", "answer", "output", "response", "completion", "result", "text", "content", "generation")
# Keys beside an answer that are no part of it.
_BESIDE = frozenset(
    (
        "id", "model", "object", "created", "usage", "usage_metadata", "finish_reason", "finishReason", "stop_reason",
        "tool_calls", "toolCalls", "index", "logprobs", "type", "role", "name", "reasoning", "warnings", "refusal",
        "providerMetadata", "response_metadata", "additional_kwargs",
    )
)  # fmt: skip
# How OpenLIT joins the messages of a prompt.
_JOINED = re.compile(r"(?:^|\n)(system|user|assistant|tool): ")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message.

    Attributes
    ----------
    role : str
        `system`, `user`, `assistant`, `tool`, or what the export calls it.
    text : str
        What it says; "" for a message that only calls tools.
    calls : bool
        It calls tools.
    named : bool
        It names its role.
    """

    role: str
    text: str
    calls: bool = False
    named: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """What came out of a model: the texts of its choices, the answer first, and whether it called tools."""

    texts: tuple[str, ...] = ()
    calls: bool = False


def decode(value: Any) -> Any:
    """Decode a text that is a JSON object or list, or what Python prints of one; nested texts too."""
    for _ in range(3):
        if not isinstance(value, str) or not (text := value.strip()).startswith(("{", "[")):
            return value
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return _decode_python(value, text)
    return value


def question_of(turns: Sequence[Turn]) -> str | None:
    """The user's last message. None where no message names the user."""
    return next((turn.text for turn in reversed(turns) if turn.role == "user" and turn.text.strip()), None)


def request(value: Any) -> list[Turn]:
    """Read the messages that went into a model, or into a program."""
    return _request(decode(value), _DEPTH)


def reply(value: Any, *, whole: bool = True) -> Reply:
    """Read what came out.

    Parameters
    ----------
    value : object
        As the export has it.
    whole : bool
        An object of no known form is the answer: structured output. Else it is none.
    """
    decoded = decode(value)
    if isinstance(decoded, str):
        return Reply((decoded,) if decoded.strip() else ())
    replied = _reply(decoded, _DEPTH, strict=whole)
    if replied is not None:
        return replied
    if not whole or not isinstance(decoded, (Mapping, list)) or not decoded:
        return Reply()
    return Reply((value if isinstance(value, str) else json.dumps(decoded, ensure_ascii=False, default=str),))


def message(turn: Turn) -> dict[str, Any]:
    """The message as the GenAI conventions of OpenTelemetry write it."""
    if turn.role == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "response": turn.text}]}
    return {"role": turn.role, "parts": [{"type": "text", "content": turn.text}]}


def tool_result(value: Any) -> str:
    """Read what a tool returned: the text of a message, else the value as it is."""
    decoded = decode(value)
    turn = _turn(decoded, _DEPTH, "tool")
    if turn is not None and turn.text:
        return turn.text
    return value if isinstance(value, str) else _plain(decoded, _DEPTH)


def logprobs(value: Any) -> list[Any] | None:
    """Find the log-probabilities of the first choice, as OpenAI and LangChain return them."""
    return _logprobs(decode(value), _DEPTH)


def _decode_python(value: str, text: str) -> Any:
    if not text.startswith(("{'", "[{'")) or len(text) > MAX_LITERAL:
        return value
    try:
        literal = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return value
    return literal if isinstance(literal, (dict, list)) else value


def _request(value: Any, depth: int) -> list[Turn]:
    if depth == 0:
        return []
    if isinstance(value, str):
        return _joined(value) if value.strip() else []
    if isinstance(value, Mapping):
        turn = _turn(value, depth, "user")
        if turn is not None and turn.named:
            return list(_turn_and_results(value, turn, depth))
        for key in _REQUESTS:
            inner = decode(value.get(key))
            if inner and (turns := _request(inner, depth - 1)):
                return turns if isinstance(inner, (list, Mapping)) else [Turn("user", turns[-1].text)]
        if turn is not None and turn.text:
            return [turn]
        texts = [text for text in value.values() if isinstance(text, str) and text.strip()]
        return [Turn("user", texts[0], named=False)] if len(texts) == 1 else []
    if isinstance(value, list):
        return _turns(value, depth)
    return []


def _turns(items: list[Any], depth: int) -> list[Turn]:
    """Read a list of messages. A message of a role that nobody knows answers the tool call before it."""
    if items and all(isinstance(item, list) for item in items):  # a batch of chats: LangChain wraps each
        items = items[0]
    if items and all(isinstance(item, str) for item in items):
        return _request(items[-1], depth - 1)
    if items and all(isinstance(item, Mapping) and _is_part(item) for item in items):
        text = _text(items, depth)
        return [Turn("user", text, named=False)] if text else []
    turns: list[Turn] = []
    for item in items:
        turn = _turn(decode(item), depth, "user") if isinstance(item, (Mapping, str)) else None
        if turn is None:
            continue
        if turn.role not in ("user", "assistant", "system", "tool") and any(earlier.calls for earlier in turns):
            turn = Turn("tool", turn.text)
        turns += _turn_and_results(item, turn, depth)
    return turns


def _turn_and_results(item: Any, turn: Turn, depth: int) -> Iterator[Turn]:
    """The message, and the tool results that Anthropic and Gemini put into a message of the user."""
    if turn.text or turn.calls:
        yield turn
    if turn.role != "tool" and isinstance(item, Mapping):
        for part in _parts(item):
            if isinstance(part, Mapping) and (text := _result(part, depth)):
                yield Turn("tool", text)


def _turn(item: Any, depth: int, role: str) -> Turn | None:
    """Read one message in any of its forms. None for anything else."""
    if depth == 0 or not isinstance(item, Mapping):
        return None
    inner = item.get("message")
    if isinstance(inner, Mapping):  # a choice
        return _turn(inner, depth - 1, "assistant")
    kwargs = item.get("kwargs")
    if item.get("lc") and isinstance(kwargs, Mapping):  # LangChain, serialized
        path = item.get("id")
        name = str(path[-1]) if isinstance(path, list) and path else ""
        role = _CLASSES.get(name.removesuffix("Chunk"), str(kwargs.get("role") or "user"))
        return _build(role, kwargs, depth)
    data, kind = item.get("data"), _kind(item)
    if isinstance(data, Mapping) and kind:  # LangChain, in a store
        return _build(kind, data, depth)
    if kind in _CALL_TYPES or ("toolCallId" in item and "toolName" in item and "role" not in item):
        return Turn("tool", _text(item.get("output"), depth)) if item.get("output") else Turn("assistant", "", True)
    if kind == "function_call_output":
        return Turn("tool", _text(item.get("output"), depth))
    named = item.get("role")
    if isinstance(named, str) and named:
        return _build(named, item, depth)
    if kind in ("human", "ai", "system", "tool", "AIMessageChunk") and "content" in item:
        return _build(kind, item, depth)
    if kind == "reasoning":
        return Turn("assistant", "")
    if ("content" in item or "parts" in item) and not _is_part(item):
        return _build(role, item, depth, named=False)
    return None


def _build(role: str, item: Mapping[str, Any], depth: int, *, named: bool = True) -> Turn:
    low = role.strip().lower()
    role = (
        "user"
        if low in _USERS
        else "assistant"
        if low in _ASSISTANTS
        else "tool"
        if low in _TOOLS
        else "system"
        if low in _SYSTEMS
        else role
    )
    text = _text(_body(item), depth) or _text(item.get("refusal"), depth)
    if role == "tool" and not text:
        text = "\n".join(filter(None, (_result(part, depth) for part in _parts(item) if isinstance(part, Mapping))))
    extra = item.get("additional_kwargs")
    calls = any(item.get(key) for key in _CALL_KEYS) or (
        isinstance(extra, Mapping) and any(extra.get(key) for key in _CALL_KEYS)
    )
    calls = calls or any(isinstance(part, Mapping) and _is_call(part) for part in _parts(item))
    if _is_calls(text):  # koog writes the calls as the text
        return Turn("assistant", "", True)
    return Turn(role, text, bool(calls), named)


def _body(item: Mapping[str, Any]) -> Any:
    return next((item[key] for key in ("parts", "content", "blocks", "text") if item.get(key) is not None), None)


def _parts(item: Mapping[str, Any]) -> list[Any]:
    body = _body(item)
    if isinstance(body, Mapping):
        body = body.get("parts", [body])
    return body if isinstance(body, list) else []


def _text(body: Any, depth: int) -> str:
    """Join the text parts, a line each. Tool calls, pictures and reasoning are no part of the answer."""
    if isinstance(body, str) or depth == 0:
        return body if isinstance(body, str) else ""
    if isinstance(body, list):
        return "\n".join(filter(None, (_text(part, depth - 1) for part in body)))
    if not isinstance(body, Mapping) or body.get("thought") is True:
        return ""
    if (kind := _kind(body)) and kind not in _TEXT_PARTS:
        return ""
    for key in ("text", "content", "parts", "refusal"):
        if body.get(key):
            return _text(body[key], depth - 1)
    return ""


def _result(part: Mapping[str, Any], depth: int) -> str:
    """What a tool returned, where a part of a message holds it."""
    for key in ("function_response", "functionResponse", "toolResult"):
        inner = part.get(key)
        if isinstance(inner, Mapping):
            return _plain(inner.get("response", inner.get("content")), depth)
    if _kind(part) not in _RESULT_TYPES:
        return ""
    value = next((part[key] for key in ("content", "response", "result", "output") if part.get(key) is not None), None)
    return _plain(value, depth)


def _plain(value: Any, depth: int) -> str:
    text = _text(value, depth)
    return text or ("" if value in (None, "", [], {}) else json.dumps(value, ensure_ascii=False, default=str))


def _kind(item: Mapping[str, Any]) -> str:
    """What kind of message or part it says it is; "" for one that does not."""
    kind = item.get("type", item.get("block_type"))
    return kind if isinstance(kind, str) else ""


def _is_part(item: Mapping[str, Any]) -> bool:
    return "role" not in item and _kind(item) in (_TEXT_PARTS | _RESULT_TYPES)


def _is_call(part: Mapping[str, Any]) -> bool:
    return _kind(part) in _CALL_TYPES or any(part.get(key) for key in ("function_call", "functionCall", "toolUse"))


def _is_calls(text: str) -> bool:
    if not text.lstrip().startswith('[{"'):
        return False
    calls = decode(text)
    return isinstance(calls, list) and all(
        isinstance(call, Mapping) and _kind(call) in _CALL_TYPES and ("function" in call or "name" in call)
        for call in calls
    )


def _joined(text: str) -> list[Turn]:
    """A prompt as plain text, which may be a chat whose messages were joined."""
    if not text.startswith(("system: ", "user: ")):
        return [Turn("user", text)]
    pieces = _JOINED.split(text)[1:]
    return [Turn(role, body) for role, body in zip(pieces[::2], pieces[1::2], strict=True)]


def _reply(value: Any, depth: int, *, strict: bool) -> Reply | None:
    """Read what came out; None for a value of no known form."""
    if depth == 0:
        return None
    if isinstance(value, str):
        return Reply((value,)) if value.strip() else Reply()
    if isinstance(value, list):
        return _reply_of_list(value, depth, strict)
    if not isinstance(value, Mapping):
        return None
    for key in ("choices", "candidates", "generations"):
        choices = value.get(key)
        if isinstance(choices, list) and choices:
            choices = choices[0] if isinstance(choices[0], list) else choices
            return _join([_reply(decode(choice), depth - 1, strict=strict) for choice in choices])
    if isinstance(value.get("message"), (Mapping, str)) and ("role" not in value):
        return _reply(decode(value["message"]), depth - 1, strict=strict)
    if isinstance(value.get("messages"), list):
        return _reply_of_list(value["messages"], depth, strict)
    turn = _turn(value, depth, "assistant")
    if turn is not None and (turn.named or isinstance(value.get("content"), (Mapping, list)) or turn.calls):
        return _of(turn)
    return _reply_by_key(value, depth, strict)


def _reply_by_key(value: Mapping[str, Any], depth: int, strict: bool) -> Reply | None:
    """Read an object with one answer under a name that says so."""
    named = [key for key in _ANSWERS if value.get(key) not in (None, "", [], {})]
    others = [
        key
        for key, each in value.items()
        if key not in _BESIDE and key not in named[:1] and each not in (None, "", [], {})
        and (strict or isinstance(each, str))
    ]  # fmt: skip
    if named and not others:
        return _reply(decode(value[named[0]]), depth - 1, strict=strict)
    if any(value.get(key) for key in _CALL_KEYS) and len(others) <= 1:
        return Reply(calls=True)
    if len(value) == 1 and isinstance(inner := decode(next(iter(value.values()))), (Mapping, list)):
        return _reply(inner, depth - 1, strict=strict)
    return None


def _reply_of_list(items: list[Any], depth: int, strict: bool) -> Reply | None:
    if items and all(isinstance(item, Mapping) and _is_part(item) for item in items):
        text = _text(items, depth)
        return Reply((text,) if text.strip() else ())
    turns = [_turn(decode(item), depth, "assistant") for item in items]
    if not items or any(turn is None for turn in turns):
        return None
    messages = [turn for turn in turns if turn is not None]
    if all(turn.role == "assistant" for turn in messages):
        return _join([_of(turn) for turn in messages])
    return _of(messages[-1])  # a conversation: its last message is what came out


def _of(turn: Turn) -> Reply:
    if turn.role not in ("assistant", "user") or (turn.role == "user" and turn.named):
        return Reply(calls=turn.calls)
    return Reply((turn.text,) if turn.text.strip() else (), turn.calls)


def _join(replies: Sequence[Reply | None]) -> Reply:
    read = [each for each in replies if each is not None]
    return Reply(tuple(text for each in read for text in each.texts), any(each.calls for each in read))


def _logprobs(value: Any, depth: int) -> list[Any] | None:
    if depth == 0:
        return None
    if isinstance(value, list):
        return _logprobs(decode(value[0]), depth - 1) if value else None
    if not isinstance(value, Mapping):
        return None
    for key in ("choices", "generations"):
        if isinstance(value.get(key), list):
            return _logprobs(value[key], depth - 1)
    held = value.get("logprobs")
    content = held.get("content") if isinstance(held, Mapping) else None
    if isinstance(content, list) and content:
        return content
    for key in ("generation_info", "response_metadata", "message", "kwargs"):
        if isinstance(value.get(key), Mapping) and (inner := _logprobs(value[key], depth - 1)):
            return inner
    return None

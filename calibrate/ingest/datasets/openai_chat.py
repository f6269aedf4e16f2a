"""Logs of the OpenAI API: what was asked and answered, with log-probabilities, further answers and schema.

Read are, one object a line or in a list, after the API reference and the types of `openai` 3.52 (`chat.completion`,
`response`, the request and output lines of the batch API):

- pairs: `{"request": {…}, "response": {…}}`
- lines of the batch API: an output, `{"custom_id", "response": {"status_code", "body": {…}}}`, and its request,
  `{"custom_id", "method", "url", "body": {…}}`, in the same file or in another one beside it (`openai_batch`)
- stored completions: a completion that has its `messages` or `input`
- conversations, as fine-tuning takes them: `{"messages": […]}`; the last message of the assistant is the answer
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from calibrate import settings
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.datasets.objects import objects, rows_of
from calibrate.ingest.datasets.openai_batch import Requests, body_of, has_lines, is_request, only_requests
from calibrate.ingest.files import InputFile
from calibrate.ingest.spans.fields.messages import last_of_user, messages, tool_results
from calibrate.ingest.values import FieldError, expected
from calibrate.sanitize import visible

TITLE = "OpenAI chat log"

_OPENING = re.compile(rb"^[\s\xef\xbb\xbf\[]*\{|^\s*\{\s*\"object\"\s*:\s*\"list\"")
_PAIR = re.compile(
    rb'"request"\s*:\s*\{[^{}]{0,2000}?"(?:messages|input)"\s*:|"response"\s*:\s*\{[^{}]{0,2000}?"choices"\s*:'
)
_COMPLETION = re.compile(rb'"object"\s*:\s*"(?:chat\.completion|response)"')
_CONVERSATION = re.compile(rb'^[\s\xef\xbb\xbf\[]*\{\s*"messages"\s*:\s*\[\s*\{\s*"(?:role|content|name)"\s*:')


def _sniff(head: bytes) -> bool:
    if not _OPENING.match(head) or b'"run_type"' in head:
        return False
    if _CONVERSATION.match(head):
        return True
    if has_lines(head):
        return True
    return bool(_PAIR.search(head) or (_COMPLETION.search(head) and b'"traceId"' not in head))


def _rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    if not has_lines(file.head):
        yield from rows_of(file, columns or {}, TITLE, _plain_traces)
        return
    with Requests(file) as requests:
        answered = False
        for row in rows_of(file, columns or {}, TITLE, partial(_batch_traces, requests)):
            answered = True
            yield row
        if not answered:
            raise only_requests(file)


def _batch_traces(requests: Requests, fields: dict[str, Any]) -> list[dict[str, Any]]:
    if is_request(fields):
        return []
    response = fields.get("response")
    if not isinstance(response, dict):
        raise FieldError("the request was not answered")
    answer = body_of(response)
    name = fields.get("custom_id")
    return [{**_trace(requests.find(name), answer), "custom_id": name}]


def _plain_traces(fields: dict[str, Any]) -> list[dict[str, Any]]:
    response = fields.get("response", fields.get("completion"))
    if isinstance(response, dict):
        request = fields.get("request", fields)
        if not isinstance(request, dict):
            raise expected("request", "an object", request)
        own = {key: fields[key] for key in ("id", "timestamp", "operation", "attributes") if fields.get(key)}
        traced = _trace(_request_of(request), body_of(response))
        return [{**traced, **{"trace_id" if key == "id" else key: own[key] for key in own}}]
    if "choices" in fields or "output" in fields:
        return [_trace(fields, fields)]
    return [_conversation(fields)]


def _trace(request: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    if "choices" in response:
        answers, tokens, finish = _of_choices(response)
    elif "output" in response:
        answers, tokens, finish = _of_output(response)
    else:
        keys = ", ".join(repr(visible(key, 40)) for key in list(response)[:8]) or "nothing"
        raise FieldError(
            f"the response is none of OpenAI's API, with 'choices' or 'output': it has {keys}. Write its text as "
            "'answer' and what was asked as 'question', a line each"
        )
    return {
        **_question_fields(request),
        "trace_id": response.get("id"),
        "answer": answers[0],
        "alternatives": answers[1:],
        "tokens": tokens,
        "model": response.get("model") or request.get("model"),
        "timestamp": response.get("created", response.get("created_at")),
        "temperature": request.get("temperature"),
        "finish_reason": finish,
        "extra": _metadata(request, response),
    }


def _of_choices(response: Mapping[str, Any]) -> tuple[list[str], list[Any] | None, Any]:
    """The answer and the others that were drawn with it; the tokens of the first."""
    choices = objects(response, "choices")
    if not choices:
        raise FieldError("choices: the model gave no answer")
    choices = sorted(choices, key=lambda choice: choice["index"] if type(choice.get("index")) is int else 0)
    answers = [_answer(choice.get("message")) for choice in choices]
    if not answers[0]:
        raise FieldError("choices: the model answered with no text: it called tools, or nothing came")
    logprobs = choices[0].get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return [answer for answer in answers if answer], _tokens(tokens), choices[0].get("finish_reason")


def _of_output(response: Mapping[str, Any]) -> tuple[list[str], list[Any] | None, Any]:
    """The answer of the Responses API: the texts of its messages."""
    parts: list[str] = []
    tokens: list[Any] = []
    for item in objects(response, "output"):
        for part in objects(item, "content") if item.get("type") == "message" else ():
            if part.get("type") == "output_text" and isinstance(part.get("text"), str):
                parts.append(part["text"])
                tokens += _tokens(part.get("logprobs")) or ()
    if not any(parts):
        raise FieldError("output: the model answered with no text: it called tools, or nothing came")
    return ["\n".join(parts)], tokens if len(parts) == 1 else None, response.get("status")


def _tokens(tokens: Any) -> list[Any] | None:
    """Tokens with their log-probabilities, without what nobody scores (bytes)."""
    if not isinstance(tokens, list) or not tokens:
        return None
    keys = ("token", "logprob", "top_logprobs")
    return [{key: token.get(key) for key in keys} if isinstance(token, dict) else token for token in tokens]


def _answer(message: Any) -> str:
    if not isinstance(message, dict):
        return ""
    texts = messages(message, "assistant")
    refusal = message.get("refusal")
    return texts[0].text if texts else refusal if isinstance(refusal, str) else ""


def _question_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    """The user's last question, the schema that the answer was to follow, the tools that were offered and, where that
    is asked for, what they returned."""
    chat = request.get("messages", request.get("input"))
    names = []
    for tool in objects(request, "tools"):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else tool.get("name", tool.get("type"))
        names += [name] if isinstance(name, str) else []
    return {
        "question": last_of_user(messages(chat, "user")) if isinstance(chat, (str, list)) else None,
        "schema": _schema(request),
        "tools": ", ".join(names) or None,
        "sources": _results_of_tools(chat) if settings.imports().tool_results else None,
    }


def _results_of_tools(chat: object) -> list[dict[str, Any]] | None:
    """What tools returned: messages of their role, or items of the Responses API."""
    items = [item for item in chat if isinstance(item, dict)] if isinstance(chat, list) else []
    results = tool_results([item if "role" in item else {"content": [item]} for item in items])
    return [{"title": result.id, "text": result.text} for result in results] or None


def _request_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    body = request.get("body")
    return body if isinstance(body, dict) else request


def _schema(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """`response_format.json_schema.schema`, or `text.format.schema` of the Responses API."""
    for path in (("response_format", "json_schema", "schema"), ("text", "format", "schema")):
        inner: Any = request
        for key in path:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            return inner
    return None


def _metadata(request: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    both = [part.get("metadata") for part in (request, response)]
    return {key: value for part in both if isinstance(part, dict) for key, value in part.items()}


def _conversation(fields: Mapping[str, Any]) -> dict[str, Any]:
    chat = objects(fields, "messages")
    last = next((at for at in reversed(range(len(chat))) if chat[at].get("role") == "assistant"), None)
    if last is None or not _answer(chat[last]):
        raise FieldError("messages: no text of the assistant is among them")
    return {
        **_question_fields({**fields, "messages": chat[:last]}),
        "trace_id": fields.get("id"),
        "answer": _answer(chat[last]),
        "model": fields.get("model"),
        "timestamp": fields.get("created", fields.get("timestamp")),
        "extra": _metadata(fields, {}),
    }


FORMATS = (Format("openai", (), _sniff, _rows, _rows, TITLE),)

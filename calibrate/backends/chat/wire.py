"""The wire format: build a request's body, parse a reply, and choose what to leave out if an endpoint refuses it.

Replies are parsed strictly here, because the client's own classes accept a page of HTML as a completion.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrate.types import Token

if TYPE_CHECKING:
    from calibrate.backends.chat.types import Request

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
MOST_ABOVE_ZERO = 1e-3  # a log-probability may be above 0 by rounding, but by no more than this


class Unusable(Exception):
    """A reply that is not a completion. `again`: a retry may succeed."""

    def __init__(self, reason: str, *, again: bool = True) -> None:
        super().__init__(reason)
        self.again = again


@dataclass(frozen=True, slots=True)
class Choice:
    text: str
    finish: str | None
    tokens: tuple[Token, ...] | None

    def to_json(self) -> list[Any]:
        tokens = None if self.tokens is None else [[t.text, t.logprob, t.top] for t in self.tokens]
        return [self.text, self.finish, tokens]

    @classmethod
    def from_json(cls, document: Sequence[Any]) -> Choice:
        text, finish, tokens = document
        if tokens is not None:
            tokens = tuple(Token(text, logprob, tuple((t, p) for t, p in top)) for text, logprob, top in tokens)
        return cls(text, finish, tokens)


@dataclass(frozen=True, slots=True)
class Completion:
    """A parsed reply. `counted` are the tokens of prompt and completion, None if the endpoint does not count."""

    choices: tuple[Choice, ...]
    model: str | None
    counted: tuple[int, int] | None


# --------------------------------------------------------------------------------------------------------------- asking


def body(request: Request, model: str, without: frozenset[str]) -> dict[str, Any]:
    """Build the JSON of a request, without the parts that the endpoint has refused before."""
    limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
    fields: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": _sendable(content)} for role, content in request.messages],
        limit: request.max_tokens,
    }
    if "temperature" not in without:
        fields["temperature"] = request.temperature
    if request.n > 1 and "n" not in without:
        fields["n"] = request.n
    if request.logprobs and "logprobs" not in without:
        fields |= {"logprobs": True, "top_logprobs": request.logprobs}
    if request.schema is not None and "response_format" not in without:
        schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.seed is not None and "seed" not in without:
        fields["seed"] = request.seed
    return fields


def dispensable(sent: Mapping[str, Any], complaint: str) -> str | None:
    """Choose the part of a refused request to leave out next; None if nothing is left to drop.

    It is the part that the endpoint's complaint names, else the one that endpoints most often do not support.
    """
    complaint_text = complaint.lower()
    if "max_completion_tokens" in complaint_text and "max_tokens" in sent:
        return "max_tokens"
    if "n" in sent and re.search(
        r"['\"`]n['\"`]|\bn\b *(>|must|should|greater|is not|other)|only one|multiple", complaint_text
    ):
        return "n"
    if "temperature" in sent and "temperature" in complaint_text and "support" in complaint_text:
        return "temperature"
    named = {
        "response_format": "response_format|json_schema|structured|grammar",
        "logprobs": "logprobs?",
        "seed": "seed",
    }
    for part, words in named.items():
        if part in sent and re.search(rf"\b({words})", complaint_text.replace("top_logprobs", "logprobs")):
            return part
    return next((part for part in ("response_format", "logprobs") if part in sent), None)


def _sendable(text: str) -> str:
    """Replace lone surrogates, which no endpoint accepts, and NUL, which databases behind them do not."""
    return _UNSENDABLE.sub("\ufffd", text)


# -------------------------------------------------------------------------------------------------------------- reading


def completion(content: bytes) -> Completion:
    """Parse a reply's body. Raises Unusable if it is not a completion with at least one text."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unusable("the chat endpoint's reply is not JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("choices"), list):
        raise Unusable(f"the chat endpoint's reply has no choices: {_summarize(document)}")
    if not document["choices"]:
        raise Unusable("the chat endpoint gave an empty list of choices", again=False)
    choices = sorted((_parse_choice(item) for item in document["choices"]), key=lambda pair: pair[0])
    model = document.get("model")
    return Completion(
        tuple(choice for _, choice in choices),
        _sendable(model)[:200] if isinstance(model, str) and model else None,
        _parse_usage(document.get("usage")),
    )


def complaint_of(content: object) -> str:
    """Read a refusing endpoint's complaint as one short line."""
    document = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(document, dict):
        parts = [str(document[key]) for key in ("message", "detail", "param", "code") if document.get(key)]
        document = " ".join(parts) or json.dumps(document)[:300]
    return " ".join(str(document or "").split())[:300]


def _summarize(document: object) -> str:
    return complaint_of(document)[:120] if isinstance(document, dict) else type(document).__name__


def _parse_choice(item: object) -> tuple[int, Choice]:
    message = item.get("message") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(message, dict):
        raise Unusable("a choice of the chat endpoint's reply has no message")
    text = message.get("content")
    finish = item.get("finish_reason")
    if text is None and isinstance(message.get("refusal"), str):
        text, finish = message["refusal"], "refusal"
    if not isinstance(text, str):
        why = f" (finish reason: {finish})" if isinstance(finish, str) else ""
        raise Unusable(f"the chat endpoint's reply has no text{why}", again=False)
    index = item.get("index")
    finish = _sendable(finish)[:40] if isinstance(finish, str) else None
    choice = Choice(_sendable(text), finish, _parse_tokens(item.get("logprobs")))
    return index if isinstance(index, int) else 0, choice


def _parse_tokens(logprobs: object) -> tuple[Token, ...] | None:
    """Parse tokens with their log-probabilities; None if there are none, or if they are something else (logits)."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return None
    try:
        texts = _token_texts(content)
        return tuple(
            Token(
                text,
                _parse_logprob(item),
                tuple((_sendable(t["token"]), _parse_logprob(t)) for t in item.get("top_logprobs") or ()),
            )
            for text, item in zip(texts, content, strict=True)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _token_texts(content: Sequence[Mapping[str, Any]]) -> list[str]:
    """Decode the tokens' texts, which join to the reply. A character split over tokens belongs to its last one."""
    if not all(isinstance(item.get("bytes"), list) for item in content):
        return [_sendable(str(item["token"])) for item in content]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = len(content) - 1
    return [_sendable(decoder.decode(bytes(item["bytes"]), final=i == last)) for i, item in enumerate(content)]


def _parse_logprob(item: Mapping[str, Any]) -> float:
    value = float(item["logprob"])
    if math.isnan(value) or value > MOST_ABOVE_ZERO:
        raise ValueError(f"{value} is not a log-probability")
    return max(min(value, 0.0), -9999.0)  # endpoints write that for "almost impossible"; JSON has no infinity


def _parse_usage(usage: object) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    prompt, spent = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not (isinstance(prompt, int) and isinstance(spent, int) and prompt >= 0 and spent >= 0):
        return None
    return prompt, spent

"""The wire format: what is sent for a request, what a reply must look like, and what an endpoint can do without.

Replies are read strictly and by ourselves: the client's own classes take a page of HTML for a completion.
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
MOST_ABOVE_ZERO = 1e-3  # a log-probability may be this much above 0 by rounding; beyond, it is none


class Unusable(Exception):
    """A reply that is no completion. `again`: another try may bring a better one."""

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
    def from_json(cls, kept: Sequence[Any]) -> Choice:
        text, finish, tokens = kept
        if tokens is not None:
            tokens = tuple(Token(text, logprob, tuple((t, p) for t, p in top)) for text, logprob, top in tokens)
        return cls(text, finish, tokens)


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply as it came. `counted` are tokens of prompt and completion, None where the endpoint does not count."""

    choices: tuple[Choice, ...]
    model: str | None
    counted: tuple[int, int] | None


# --------------------------------------------------------------------------------------------------------------- asking


def body(request: Request, model: str, without: frozenset[str]) -> dict[str, Any]:
    """The JSON of a request, less what the endpoint has turned out not to take."""
    limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
    made: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": _sendable(content)} for role, content in request.messages],
        limit: request.max_tokens,
    }
    if "temperature" not in without:
        made["temperature"] = request.temperature
    if request.n > 1 and "n" not in without:
        made["n"] = request.n
    if request.logprobs and "logprobs" not in without:
        made |= {"logprobs": True, "top_logprobs": request.logprobs}
    if request.schema is not None and "response_format" not in without:
        schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
        made["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.seed is not None and "seed" not in without:
        made["seed"] = request.seed
    return made


def dispensable(sent: Mapping[str, Any], complaint: str) -> str | None:
    """The part of a refused request that is to be left out next: what the endpoint's complaint names, else the part
    that endpoints most often do not know. None when nothing is left to drop."""
    said = complaint.lower()
    if "max_completion_tokens" in said and "max_tokens" in sent:
        return "max_tokens"
    if "n" in sent and re.search(r"['\"`]n['\"`]|\bn\b *(>|must|should|greater|is not|other)|only one|multiple", said):
        return "n"
    if "temperature" in sent and "temperature" in said and "support" in said:
        return "temperature"
    named = {
        "response_format": "response_format|json_schema|structured|grammar",
        "logprobs": "logprobs?",
        "seed": "seed",
    }
    for part, words in named.items():
        if part in sent and re.search(rf"\b({words})", said.replace("top_logprobs", "logprobs")):
            return part
    return next((part for part in ("response_format", "logprobs") if part in sent), None)


def _sendable(text: str) -> str:
    """No endpoint takes lone surrogates, and databases behind them no NUL."""
    return _UNSENDABLE.sub("\ufffd", text)


# -------------------------------------------------------------------------------------------------------------- reading


def completion(content: bytes) -> Completion:
    """The reply's body, read. Raises Unusable where it is no completion with at least one text."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unusable("the chat endpoint's reply is not JSON") from error
    if not isinstance(document, dict) or not isinstance(document.get("choices"), list):
        raise Unusable(f"the chat endpoint's reply has no choices: {_told(document)}")
    if not document["choices"]:
        raise Unusable("the chat endpoint gave an empty list of choices", again=False)
    choices = sorted((_choice(one) for one in document["choices"]), key=lambda pair: pair[0])
    model = document.get("model")
    return Completion(
        tuple(choice for _, choice in choices),
        _sendable(model)[:200] if isinstance(model, str) and model else None,
        _counted(document.get("usage")),
    )


def complaint_of(content: object) -> str:
    """What a refusing endpoint says, in one short line."""
    document = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(document, dict):
        parts = [str(document[key]) for key in ("message", "detail", "param", "code") if document.get(key)]
        document = " ".join(parts) or json.dumps(document)[:300]
    return " ".join(str(document or "").split())[:300]


def _told(document: object) -> str:
    return complaint_of(document)[:120] if isinstance(document, dict) else type(document).__name__


def _choice(one: object) -> tuple[int, Choice]:
    message = one.get("message") if isinstance(one, dict) else None
    if not isinstance(one, dict) or not isinstance(message, dict):
        raise Unusable("a choice of the chat endpoint's reply has no message")
    text = message.get("content")
    finish = one.get("finish_reason")
    if text is None and isinstance(message.get("refusal"), str):
        text, finish = message["refusal"], "refusal"
    if not isinstance(text, str):
        why = f" (finish reason: {finish})" if isinstance(finish, str) else ""
        raise Unusable(f"the chat endpoint's reply has no text{why}", again=False)
    index = one.get("index")
    finish = _sendable(finish)[:40] if isinstance(finish, str) else None
    choice = Choice(_sendable(text), finish, _tokens(one.get("logprobs")))
    return index if isinstance(index, int) else 0, choice


def _tokens(logprobs: object) -> tuple[Token, ...] | None:
    """The tokens with their log-probabilities; None where there are none or they are something else (logits)."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return None
    try:
        texts = _texts(content)
        return tuple(
            Token(
                text, _logprob(one), tuple((_sendable(t["token"]), _logprob(t)) for t in one.get("top_logprobs") or ())
            )
            for text, one in zip(texts, content, strict=True)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _texts(content: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tokens' texts, which join to the reply. A character split over tokens is the text of its last one."""
    if not all(isinstance(one.get("bytes"), list) for one in content):
        return [_sendable(str(one["token"])) for one in content]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = len(content) - 1
    return [_sendable(decoder.decode(bytes(one["bytes"]), final=i == last)) for i, one in enumerate(content)]


def _logprob(one: Mapping[str, Any]) -> float:
    value = float(one["logprob"])
    if math.isnan(value) or value > MOST_ABOVE_ZERO:
        raise ValueError(f"{value} is no log-probability")
    return max(min(value, 0.0), -9999.0)  # what endpoints write for "next to impossible"; infinity is no JSON


def _counted(usage: object) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    prompt, spent = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not (isinstance(prompt, int) and isinstance(spent, int) and prompt >= 0 and spent >= 0):
        return None
    return prompt, spent

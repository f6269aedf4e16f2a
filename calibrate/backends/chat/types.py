"""Requests to a chat model and its replies. Import these from `calibrate.backends.chat`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrate.errors import TouchstoneError
from calibrate.types import Token, Usage


class ChatError(TouchstoneError):
    """A request without a usable reply. The message is the reason and the remedy, and holds no key.

    `final`: every other request would fail too until somebody changes something (key, address, budget).
    """

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


@dataclass(frozen=True)
class Request:
    """Messages as (role, content) pairs, and how to answer them.

    `max_tokens` limits each answer; `n` answers are drawn at `temperature` (0: the likeliest tokens). `logprobs` is the
    number of likeliest tokens to return for each place (0: no log-probabilities). `schema` is the JSON Schema of the
    answer, used if the endpoint supports structured output. `seed` repeats a draw if the endpoint can. A reply that is
    not `readable` is no answer: it is not kept, and the request is sent again when it is asked again. `about` is the
    id of the trace that is asked about: its replies go when it is purged.
    """

    messages: tuple[tuple[str, str], ...]
    max_tokens: int = 256
    temperature: float = 0.0
    n: int = 1
    logprobs: int = 0
    schema: Mapping[str, Any] | None = None
    seed: int | None = None
    readable: Callable[[Reply], bool] | None = field(default=None, compare=False, repr=False)
    about: str = field(default="", compare=False)

    def keeps(self, reply: Reply) -> bool:
        """Tell whether the reply is an answer."""
        return self.readable is None or self.readable(reply)

    def digest(self, model: str, url: str) -> str:
        """Compute 64 hex digits over everything that may change the reply."""
        fields = [
            self.messages,
            self.max_tokens,
            float(self.temperature),
            self.n,
            self.logprobs,
            self.schema,
            self.seed,
        ]
        text = json.dumps(["chat", 1, model, url, fields], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """An answer.

    `finish` says why it ended ("stop", "length", …). `tokens` are there if log-probabilities were requested and
    returned. `model` is the endpoint's name of it. `others` are the texts of the further answers if n > 1; fewer than
    n - 1 if some failed.
    """

    text: str
    finish: str | None
    tokens: tuple[Token, ...] | None
    usage: Usage
    model: str
    others: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All answers, this one first."""
        return (self.text, *self.others)


@dataclass(frozen=True)
class Estimate:
    """What requests would take.

    `requests` are to be sent; `cached` ones cost nothing. Prompt tokens are guessed, completion tokens are the most
    possible. `cost` is in US dollars, at most; None if the price is unknown.
    """

    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

"""What is asked of a chat model and what comes back. `calibrate.backends.chat` is where to import these from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrate.errors import TouchstoneError
from calibrate.types import Token, Usage


class ChatError(TouchstoneError):
    """A request without a usable reply; the message is the reason and the remedy, and holds no key.

    `final`: no other request will fare better before somebody changes something (key, address, budget).
    """

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


@dataclass(frozen=True)
class Request:
    """Messages as (role, content) pairs, and how to answer them.

    `max_tokens` bounds each answer; `n` answers are drawn at `temperature` (0: the likeliest tokens). `logprobs` is how
    many of the likeliest tokens are wanted in each place (0: no log-probabilities at all). `schema` is the JSON Schema
    of the answer, used where the endpoint has structured output. `seed` repeats a draw where the endpoint can.
    """

    messages: tuple[tuple[str, str], ...]
    max_tokens: int = 256
    temperature: float = 0.0
    n: int = 1
    logprobs: int = 0
    schema: Mapping[str, Any] | None = None
    seed: int | None = None

    def digest(self, model: str, url: str) -> str:
        """64 hex digits over everything that may change the reply."""
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
    """The answer, why it ended ("stop", "length" …), its tokens where log-probabilities were wanted and given, what it
    cost, and the model as the endpoint calls it. `others` are the texts of the further answers where n > 1; fewer than
    n - 1 when some could not be had."""

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
    """What asking would take: `requests` to send and `cached` ones that cost nothing; tokens of the prompts, guessed,
    and of the completions, at most; US dollars at most, None where the price is not known."""

    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

"""What the tests of a failing chat endpoint share."""

from __future__ import annotations

import json
from collections.abc import Callable

from calibrate.backends.chat import Chat, ChatError, Reply, Request
from calibrate.workspace import Budget, Workspace
from tests.backends.chat_stub import Asked, Say, Stub, good

KEY = "sk-secret-0123456789"
PRICES = "model,prompt,completion,as_of\nstub*,1000,2000,2026-11-21\nfree*,0,0,\n*,none,none,\n"
Plan = Callable[[Asked], Say]
Start = Callable[..., tuple[Stub, Chat]]


class Cache(dict[str, dict[str, object]]):
    def put(self, key: str, model: str, reply: dict[str, object], *, about: str = "") -> None:
        self[key] = json.loads(json.dumps(reply))


def request(text: str = "hello", **given: object) -> Request:
    return Request((("user", text),), **given)  # type: ignore[arg-type]


def one(chat: Chat, asked: Request | None = None) -> Reply | ChatError:
    (result,) = chat.ask([asked or request()])
    return result


def first(*says: Say) -> Plan:
    """These for the first requests, then good replies."""
    return lambda asked: says[asked.number] if asked.number < len(says) else good(asked)


def paid(limit: float | None = None, **given: object) -> Workspace:
    budget = None if limit is None else Budget(limit)
    return Workspace(files={"prices.csv": PRICES}, budget=budget, **given)  # type: ignore[arg-type]

"""A client for any chat endpoint with the OpenAI wire format: many requests at once, answered in order, paid for once.

    for reply in chat().ask(Request((("user", text),)) for text in texts):
        if isinstance(reply, ChatError): …

Address, model and key come only from the environment (`calibrate.settings.chat`), the cache of replies and the budget
from the workspace. Trace text is sent only to the address that the team has configured.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from calibrate import deadlines, settings, workspace
from calibrate.backends.chat.price import Price, guess_tokens, price_of
from calibrate.backends.chat.send import Answered, Asking, Endpoint
from calibrate.backends.chat.types import ChatError, Estimate, Reply, Request
from calibrate.backends.chat.wire import Choice
from calibrate.errors import BadInput, TouchstoneError
from calibrate.settings import ChatSettings
from calibrate.types import Usage
from calibrate.workspace import ReplyCache

HELP = (
    "set TOUCHSTONE_CHAT_URL to the base URL of an OpenAI-compatible endpoint (like http://localhost:8080/v1), "
    "TOUCHSTONE_CHAT_MODEL to a model there, and TOUCHSTONE_CHAT_KEY if it needs a key"
)


class Chat:
    """One model at one endpoint. Get it from `chat(model)`; it does not connect before the first request."""

    def __init__(self, settings: ChatSettings, *, problem: str | None = None) -> None:
        self.model = settings.model
        self._settings = settings
        self._problem = problem
        self._endpoint = Endpoint(settings)

    # ------------------------------------------------------------------------------------------------------ identity

    def unavailable(self) -> str | None:
        """Why the endpoint cannot be used, and the remedy; None if it can. Sends nothing."""
        if self._problem is not None:
            return self._problem
        if not self._settings.url:
            return f"no chat endpoint is set; {HELP}"
        if not self.model:
            return "no chat model is set; set TOUCHSTONE_CHAT_MODEL to one that the endpoint serves"
        if importlib.util.find_spec("openai") is None:
            return "the package openai is missing; install it with `pip install 'openai>=1.66,<4'`"
        return None

    def revision(self) -> str:
        """The model's name and a digest of the endpoint's address; part of every cache key. Holds nothing secret."""
        if not self._settings.url:
            return f"{self.model or 'chat'}@missing"
        return f"{self.model}@{hashlib.sha256(self._endpoint.place.encode()).hexdigest()[:12]}"

    @property
    def concurrency(self) -> int:
        """The most requests in flight at once."""
        return self._settings.concurrency

    # --------------------------------------------------------------------------------------------------------- money

    def price(self) -> Price | None:
        """US dollars per million tokens; None if `prices.csv` has no price. Raises BadInput for an invalid file."""
        return price_of(self.model)

    def estimate(self, requests: Iterable[Request]) -> Estimate:
        """Estimate what these requests would take. Sends nothing. Raises BadInput for an invalid price table."""
        price, cache = self.price(), workspace.current().replies
        digests: set[str] = set()
        uncached = cached = prompt = completion = 0
        for request in requests:
            key = request.digest(self.model, self._settings.url)
            if key in digests or self._find_cached(request, key, cache) is not None:
                cached += 1
            else:
                uncached += 1
                prompt += guess_tokens([content for _, content in request.messages])
                completion += request.max_tokens * request.n
            digests.add(key)
        return Estimate(uncached, cached, prompt, completion, None if price is None else price.cost(prompt, completion))

    # -------------------------------------------------------------------------------------------------------- asking

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply | ChatError]:
        """Send requests; yields one result each, in order, as soon as it and all earlier ones have arrived.

        A request that fails yields a ChatError; nothing is raised. `requests` is read a little ahead of what is in
        flight, in the caller's thread. Closing the iterator cancels what is in flight.
        """
        if why := self.unavailable():
            for _ in requests:
                yield ChatError(why, final=True)
            return
        run = _Run(self._asking(), workspace.current().replies, deadlines.current())
        source = iter(requests)
        waiting: deque[_Waiting] = deque()
        try:
            while True:
                self._send_ahead(source, waiting, run)
                if not waiting:
                    return
                result = waiting[0].future.result()
                is_repeat = waiting.popleft().again
                yield replace(result, usage=Usage(cached=1)) if is_repeat and isinstance(result, Reply) else result
        finally:
            for waiter in waiting:
                waiter.future.cancel()
            run.settle(0)

    def _asking(self) -> Asking:
        budget = workspace.current().budget
        try:
            price = self.price()
        except BadInput as error:
            return Asking(budget, None, ChatError(str(error), final=True))
        if budget is not None and price is None:
            why = (
                f"a budget of ${budget.limit:g} cannot be kept: the price of {self.model!r} is not known; give it a "
                "line in prices.csv (0 for a model that costs nothing)"
            )
            return Asking(budget, None, ChatError(why, final=True))
        return Asking(budget, price)

    def _send_ahead(self, source: Iterator[Request], waiting: deque[_Waiting], run: _Run) -> None:
        """Start requests up to twice what may be in flight, so that the endpoint never waits for this thread.

        Behind one slow reply at the head of the line, up to eight times as many may wait as may be in flight.
        """
        run.settle(8 * self.concurrency)
        unfinished = sum(not waiter.future.done() for waiter in waiting)
        while len(waiting) < 8 * self.concurrency and unfinished < 2 * self.concurrency:
            request = next(source, None)
            if request is None:
                return
            waiting.append(self._start(request, run))
            unfinished += not waiting[-1].future.done()
            if waiting[0].future.done():
                return

    def _start(self, request: Request, run: _Run) -> _Waiting:
        key = request.digest(self.model, self._settings.url)
        if (running := run.sent.get(key)) is not None:
            return _Waiting(running, again=True)
        if (reply := self._find_cached(request, key, run.cache)) is not None:
            future: Future[Reply | ChatError] = Future()
            future.set_result(reply)
            return _Waiting(future)
        run.sent[key] = self._endpoint.submit(lambda: self._result(request, key, run))
        return _Waiting(run.sent[key])

    def _find_cached(self, request: Request, key: str, cache: ReplyCache | None) -> Reply | None:
        """Find the kept answer; None where there is none, or where what is kept cannot be read as one."""
        stored = None if cache is None else _read_cached(cache, key)
        reply = None if stored is None else self._to_reply(stored, Usage(cached=1))
        return reply if reply is not None and request.keeps(reply) else None

    async def _result(self, request: Request, key: str, run: _Run) -> Reply | ChatError:
        """Return a reply or an error, whatever happens."""
        try:
            async with asyncio.timeout_at(run.until):  # the loop's clock is time.monotonic, as the deadline's
                answered = await self._endpoint.answer(request, run.asking)
            if run.cache is not None and len(answered.choices) == request.n:
                write = self._endpoint.writer.submit(self._cache_reply, run.cache, request, key, answered)
                run.keeping.append((key, write))
            return self._to_reply(answered, answered.usage)
        except ChatError as error:
            return ChatError(str(error), final=error.final)  # a new one: the original's context holds the request
        except TimeoutError:
            return self._endpoint.error("no reply from the chat endpoint before the deadline of the check")
        except Exception as error:
            return self._endpoint.error(f"the chat request failed: {type(error).__name__}: {str(error)[:200]}")

    def _cache_reply(self, cache: ReplyCache, request: Request, key: str, answered: Answered) -> None:
        if not request.keeps(self._to_reply(answered, answered.usage)):
            return
        document = {"choices": [choice.to_json() for choice in answered.choices], "model": answered.model}
        # If the store cannot be written, the run stops when it saves scores; the reply itself is valid.
        with contextlib.suppress(TouchstoneError):
            cache.put(key, self.model, document, about=request.about)

    def _to_reply(self, answered: Answered, usage: Usage) -> Reply:
        first, *alternatives = answered.choices
        texts = tuple(choice.text for choice in alternatives)
        return Reply(first.text, first.finish, first.tokens, usage, answered.model or self.model, texts)


@dataclass
class _Run:
    """The state of one call of `ask`.

    `sent` are requests by their digest, until the cache has their replies; `keeping` are writes to the cache, in order.
    `until` is the deadline of the check that asks, a time.monotonic(): no request outlives it.
    """

    asking: Asking
    cache: ReplyCache | None
    until: float | None = None
    sent: dict[str, Future[Reply | ChatError]] = field(default_factory=dict)
    keeping: deque[tuple[str, Future[None]]] = field(default_factory=deque)

    def settle(self, most: int) -> None:
        """Wait until at most `most` writes to the cache are pending: a disk may be slower than an endpoint."""
        while self.keeping and (len(self.keeping) > most or self.keeping[0][1].done()):
            key, write = self.keeping[0]
            write.result()
            self.keeping.popleft()
            self.sent.pop(key, None)


@dataclass(frozen=True)
class _Waiting:
    """`again`: the same request is before it in line; it costs nothing."""

    future: Future[Reply | ChatError]
    again: bool = False


def _read_cached(cache: ReplyCache, key: str) -> Answered | None:
    """Read a reply from the cache; None if there is none, or if another version wrote it."""
    document: Mapping[str, Any] | None = cache.get(key)
    if not document:
        return None
    try:
        choices = tuple(Choice.from_json(choice) for choice in document["choices"])
        return Answered(choices, Usage(), document.get("model")) if choices else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def chat(model: str = "") -> Chat:
    """Get the process's Chat of this model ("": TOUCHSTONE_CHAT_MODEL) at the configured endpoint.

    Never raises: `unavailable` reports what is wrong with the settings.
    """
    try:
        configured = settings.chat()
    except BadInput as error:
        return Chat(ChatSettings("", model, "", 1, 1.0), problem=str(error))
    return _chats(replace(configured, model=model or configured.model))


_chats = lru_cache(maxsize=8)(Chat)

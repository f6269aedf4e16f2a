"""Send requests to one endpoint, in an event loop of its own, adapting to its load and to the fields it accepts."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from calibrate.backends.chat import wire
from calibrate.backends.chat.flow import GARBLED_TRIES, MAX_REQUESTED_WAIT, TRIES, Throttle, requested_wait, wait_before
from calibrate.backends.chat.price import Price, guess_tokens
from calibrate.backends.chat.types import ChatError, Request
from calibrate.backends.chat.wire import Choice, Completion, Unusable
from calibrate.sanitize import visible
from calibrate.settings import ChatSettings
from calibrate.types import Usage
from calibrate.workspace import Budget

OVERLOADED = frozenset({429, 503, 529})
RETRIED = frozenset({408, 409, 425, 429})  # and whatever is 500 or more
REFUSED = frozenset({400, 422})  # perhaps only a part of the request
FINAL = frozenset({401, 402, 404})  # the same for every request

T = TypeVar("T")


@dataclass
class Asking:
    """One call of `ask`. `halted` says why it sends nothing more."""

    budget: Budget | None
    price: Price | None
    halted: ChatError | None = None


@dataclass(frozen=True)
class Answered:
    """Choices in order, what they cost, and the model that the endpoint named."""

    choices: tuple[Choice, ...]
    usage: Usage
    model: str | None


class _Retry(Exception):
    """An attempt that failed and may be repeated.

    `wait` are the seconds that the endpoint requested. `unreachable`: nothing answers at its address. `garbled`: what
    answers there is no chat endpoint, or does not speak like one.
    """

    def __init__(
        self, reason: str, *, wait: float | None = None, unreachable: bool = False, garbled: bool = False
    ) -> None:
        super().__init__(reason)
        self.wait, self.unreachable, self.garbled = wait, unreachable, garbled


class _PartRefused(Exception):
    """The endpoint does not accept the request's body; the message is its complaint."""

    def __init__(self, complaint: str, body: dict[str, Any]) -> None:
        super().__init__(complaint)
        self.body = body


class Endpoint:
    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        parts = urlsplit(settings.url)
        self.place = f"{parts.netloc}{parts.path}"
        self.without: set[str] = set()  # parts of requests that the endpoint has refused before
        self._rng = random.Random()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._reserved = 0
        self._answers = 0  # replies so far

    # ------------------------------------------------------------------------------------------------------- the loop

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Start work in the endpoint's event loop. Cancelling the future cancels it."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():  # a forked process has no threads
                self._start()
            return asyncio.run_coroutine_threadsafe(work(), self._loop)

    def _start(self) -> None:
        from openai import AsyncOpenAI

        self._loop = asyncio.new_event_loop()
        self.throttle = Throttle(self.settings.concurrency)
        self._settled = asyncio.Event()
        self._reserved = 0
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="chat-cache")  # a store's commit would stop the loop
        # Local servers need no key, but the client does. Its own retries would ignore the budget and the throttle.
        self._client = AsyncOpenAI(
            base_url=self.settings.url,
            api_key=self.settings.key or "none",
            max_retries=0,
            timeout=self.settings.timeout,
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat", daemon=True)
        self._thread.start()

    # -------------------------------------------------------------------------------------------------------- answers

    async def answer(self, request: Request, asking: Asking) -> Answered:
        """Get all answers to a request. Raises ChatError if there is not even one."""
        if request.n > 1 and "n" in self.without:
            return await self._one_by_one(request, asking, range(request.n), ())
        first = await self._answer_with_retries(request, asking)
        missing = range(len(first.choices), request.n)
        if not missing:
            return replace(first, choices=first.choices[: request.n])
        self.without.add("n")
        return await self._one_by_one(request, asking, missing, (first,))

    async def _one_by_one(
        self, request: Request, asking: Asking, numbers: range, earlier: tuple[Answered, ...]
    ) -> Answered:
        """Request each answer separately, for an endpoint that returns one at a time. Failed ones are left out."""
        seeds = [None if request.seed is None else request.seed + number for number in numbers]
        singles = [self._answer_with_retries(replace(request, n=1, seed=seed), asking) for seed in seeds]
        results = await asyncio.gather(*singles, return_exceptions=True)
        answered = [*earlier, *(result for result in results if isinstance(result, Answered))]
        failures = [result for result in results if isinstance(result, BaseException)]
        if not answered:
            raise failures[0]
        choices = tuple(choice for result in answered for choice in result.choices)
        return Answered(choices, sum((result.usage for result in answered), Usage()), answered[0].model)

    async def _answer_with_retries(self, request: Request, asking: Asking) -> Answered:
        """Send one request, again where that may help. Raises ChatError."""
        alive, garbled = self._answers, 0
        for attempt in range(1, TRIES + 1):
            try:
                return await self._answer_adapted(request, asking)
            except _Retry as error:
                trouble = error
            garbled += trouble.garbled
            if garbled == GARBLED_TRIES and alive == self._answers:  # nobody had an answer since this request began
                advice = f"{self.place} may be no chat endpoint: check TOUCHSTONE_CHAT_URL"
                asking.halted = self.error(f"{trouble}, {garbled} times in a row; {advice}", final=True)
                raise asking.halted
            if (trouble.wait or 0) > MAX_REQUESTED_WAIT:
                raise self.error(f"{trouble}, and asks to wait {trouble.wait:.0f} s; try again later")
            if attempt < TRIES:
                await asyncio.sleep(wait_before(attempt + 1, trouble.wait, self._rng))
        reason = f"{trouble}, {TRIES} times in a row"
        if trouble.unreachable:
            reason = (
                f"nobody answered at {self.place} in {TRIES} tries; check TOUCHSTONE_CHAT_URL and that the server runs"
            )
        problem = self.error(reason, final=trouble.unreachable)
        if trouble.unreachable and alive == self._answers:  # no request has succeeded since this one began
            asking.halted = problem
        raise problem

    async def _answer_adapted(self, request: Request, asking: Asking) -> Answered:
        """Make one attempt, leaving out the parts that the endpoint refuses.

        They are left out of later requests only if that helped: a request may be refused for its content.
        """
        dropped: set[str] = set()
        while True:
            try:
                answered = await self._send_once(request, dropped, asking)
            except _PartRefused as refused:
                part = wire.dispensable(refused.body, str(refused))
                if part is None or part in dropped:
                    raise self.error(f"the chat endpoint refused the request: {refused}") from None
                dropped.add(part)
                continue
            self.without |= dropped
            return answered

    async def _send_once(self, request: Request, dropped: set[str], asking: Asking) -> Answered:
        """Send one HTTP request without the dropped parts, once the throttle and the budget allow it."""
        from openai import APIStatusError

        async with self.throttle.slot() as began:
            if asking.halted is not None:
                raise asking.halted
            reserved = await self._reserve(request, asking)
            body = wire.body(request, self.settings.model, frozenset(self.without | dropped))
            spent = reserved  # until known better: an endpoint may charge for a reply that did not arrive
            try:
                completion = wire.completion(await self._post(body, began))
                usage = self._usage(request, completion, asking.price)
                spent = usage.cost or 0.0
            except APIStatusError as error:
                spent = 0.0
                if error.status_code in REFUSED:
                    raise _PartRefused(_complaint_of(error), body) from None
                raise self._status_problem(error, began, asking) from None
            except Unusable as error:
                raise (_Retry(str(error), garbled=True) if error.again else self.error(str(error))) from None
            finally:
                self._settle(asking, reserved, spent)
            self.throttle.grow()
            self._answers += 1
            return Answered(completion.choices, usage, completion.model)

    async def _post(self, sent: dict[str, Any], began: float) -> bytes:
        """Get the reply's body. Raises _Retry if none came, APIStatusError for a status of 400 or more."""
        from openai import APIConnectionError, APITimeoutError

        try:
            async with asyncio.timeout(self.settings.timeout):
                # Not `chat.completions.create`: it spends a quarter of the time on checking the body just built.
                reply = await self._client.post("/chat/completions", body=sent, cast_to=_response_class())
                content: bytes = reply.content
                return content
        except (TimeoutError, APITimeoutError):
            self.throttle.shrink(began)
            self.throttle.linger(self.settings.timeout)
            reason = f"no reply from the chat endpoint within {self.settings.timeout:g} s (TOUCHSTONE_CHAT_TIMEOUT)"
            raise _Retry(reason) from None
        except APIConnectionError as error:
            cause = type(error.__cause__).__name__
            if cause == "ConnectError":
                raise _Retry(f"nobody answers at {self.place}", unreachable=True) from None
            raise _Retry(f"the connection to the chat endpoint broke ({cause})") from None

    def _status_problem(self, error: Any, began: float, asking: Asking) -> Exception:
        """Apply an error status to the throttle and the rest of the call. Returns the exception for the request."""
        status, complaint = int(error.status_code), _complaint_of(error)
        wait = requested_wait(dict(error.response.headers.items()), datetime.now(UTC))
        out_of_money = "insufficient_quota" in complaint
        if status in OVERLOADED and not out_of_money:
            self.throttle.shrink(began, wait=wait if wait is None or wait <= MAX_REQUESTED_WAIT else None)
        if (status in RETRIED or status >= 500) and not out_of_money:
            return _Retry(f"the chat endpoint said {status}: {complaint}", wait=wait)
        if status in FINAL or out_of_money:
            asking.halted = self.error(self._describe_final(status, complaint), final=True)
            return asking.halted
        return self.error(f"the chat endpoint said {status}: {complaint}")

    def _describe_final(self, status: int, complaint: str) -> str:
        if status == 401 and self.settings.key:
            return f"the chat endpoint at {self.place} does not accept the key (401); check TOUCHSTONE_CHAT_KEY"
        if status == 401:
            return f"the chat endpoint at {self.place} wants a key (401); set TOUCHSTONE_CHAT_KEY"
        if status == 404:
            model = self.settings.model
            variables = "TOUCHSTONE_CHAT_MODEL and TOUCHSTONE_CHAT_URL"
            return f"no model {model!r} at {self.place} (404: {complaint}); check {variables}"
        return f"the chat endpoint's account has no money left ({status}: {complaint})"

    def error(self, reason: str, *, final: bool = False) -> ChatError:
        """Make a ChatError. An endpoint's text is untrusted and may repeat the key."""
        key = self.settings.key
        return ChatError(visible(reason.replace(key, "[key]") if len(key) > 3 else reason), final=final)

    # ---------------------------------------------------------------------------------------------------------- money

    async def _reserve(self, request: Request, asking: Asking) -> float:
        """Reserve what the request may cost at most. Waits while requests in flight may leave money over."""
        if asking.budget is None or asking.price is None:
            return 0.0
        prompt = guess_tokens([content for _, content in request.messages])
        cost = asking.price.cost(prompt, request.max_tokens * request.n)
        while not asking.budget.reserve(cost):
            if self._reserved == 0:
                raise ChatError(
                    f"the budget of ${asking.budget.limit:g} does not allow the next request: it may cost ${cost:.2g} "
                    f"and only ${asking.budget.limit - asking.budget.spent:.2g} are left; what is paid for is kept, a "
                    "larger budget goes on from here",
                    final=True,
                )
            self._settled.clear()
            await self._settled.wait()
        self._reserved += 1
        return cost

    def _settle(self, asking: Asking, reserved: float, spent: float) -> None:
        if asking.budget is not None and asking.price is not None:
            asking.budget.settle(reserved, spent)
            self._reserved -= 1
            self._settled.set()

    @staticmethod
    def _usage(request: Request, completion: Completion, price: Price | None) -> Usage:
        """Compute a reply's usage from the endpoint's counts, or from a guess if it does not count."""
        prompt, spent = completion.counted or (
            guess_tokens([content for _, content in request.messages]),
            guess_tokens([choice.text for choice in completion.choices]),
        )
        return Usage(1, 0, prompt, spent, None if price is None else price.cost(prompt, spent))


@cache
def _response_class() -> Any:
    """The class of replies in the HTTP library of openai: httpx2 from its version 3 on, httpx before."""
    from openai import DefaultAsyncHttpxClient

    library = DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]
    return import_module(library).Response


def _complaint_of(error: Any) -> str:
    """The endpoint's own words in an APIStatusError."""
    return wire.complaint_of(error.body) or str(error.response.reason_phrase)

"""What the judges share: requests of a whole batch go out together, scores come back in order as replies arrive."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, Literal, TypeVar, cast

from calibrate.backends.chat import Chat, ChatError, Reply, Request, chat, prompts
from calibrate.backends.chat.prompts import Prompt
from calibrate.backends.files import version
from calibrate.backends.text.refusals import find_refusal
from calibrate.backends.text.segments import Part, sentences
from calibrate.detectors.base import abstained, failed, missing, scored
from calibrate.detectors.shared.replies import Unparsed, only_object
from calibrate.detectors.shared.scoring import contexts
from calibrate.errors import TouchstoneError
from calibrate.types import Evidence, Score, Trace, Usage

BATCH = 256  # traces at once: enough to keep an endpoint busy while the first replies are read
MAX_CHARACTERS = 400_000  # characters: about 100,000 tokens
MAX_REPLY_SHOWN = 2_000  # characters of an unread reply that are kept
_THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked about one trace, and how the replies become its score. `read` may raise Unparsed."""

    requests: tuple[Request, ...]
    read: Callable[[Sequence[Reply]], Score]


@dataclass(frozen=True)
class ChatDetector(ABC):
    """A detector that asks a chat model: all but what it asks, which is `plan`, and the file with its wording."""

    prompt: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    batch: ClassVar[int] = BATCH

    variant: Literal["default", "plain"] = "default"
    model: str = field(
        default="", metadata={"help": "Chat model of the endpoint; empty: the one in TOUCHSTONE_CHAT_MODEL."}
    )
    longest: int = field(
        default=MAX_CHARACTERS,
        metadata={
            "help": "Characters of all prompts for one trace; a trace that needs more abstains.",
            "low": 1_000,
            "high": 4_000_000,
        },
    )

    def revision(self) -> str:
        """The model behind the endpoint and the wording it is asked with."""
        return f"{chat(self.model).revision()}+prompt-{version(self.prompt)}"

    def unavailable(self) -> str | None:
        """No endpoint, or a prompt file that lacks a place."""
        return chat(self.model).unavailable() or prompts.problem(self.prompt)

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_with_judge(self.needs, traces, self._plan, chat(self.model))

    def requests(self, trace: Trace) -> list[Request]:
        """What scoring the trace would ask, for an estimate of its cost; nothing is sent."""
        case = plan_case(self.needs, trace, self._plan)
        return list(case.requests) if isinstance(case, Case) else []

    @abstractmethod
    def plan(self, trace: Trace) -> Case | Score:
        """What to ask about the trace, or the score that it has without asking. It meets the needs."""

    @abstractmethod
    def plan_plain(self, trace: Trace) -> Case | Score:
        """The same as the common recipe does it."""

    def _plan(self, trace: Trace) -> Case | Score:
        return self.plan_plain(trace) if self.variant == "plain" else self.plan(trace)


class Refused(Exception):
    """The judge would not judge."""


class Unreadable(Exception):
    """A reply that gave no verdict, and why."""

    def __init__(self, reply: Reply, why: Unparsed | Refused) -> None:
        super().__init__(str(why))
        self.reply, self.why = reply, why


def score_with_judge(
    needs: frozenset[str], traces: Sequence[Trace], plan: Callable[[Trace], Case | Score], endpoint: Chat
) -> Iterator[Score]:
    """One score a trace, in order, each as soon as its own replies are there. What goes wrong with one fails it.

    Prompts are made a little ahead of what is in flight, so that a batch of long traces does not lie in memory.
    """
    plans: deque[Case | Score] = deque()

    def requests() -> Iterator[Request]:
        for trace in traces:
            plans.append(planned := plan_case(needs, trace, plan))
            if isinstance(planned, Case):
                yield from planned.requests

    early: deque[Reply | ChatError] = deque()
    # Closed at the end, come what may: what has not been asked by then never is.
    with closing(cast("Generator[Reply | ChatError]", endpoint.ask(requests()))) as later:
        for trace in traces:
            began = time.perf_counter()
            while not plans and (reply := next(later, None)) is not None:
                early.append(reply)  # to the next trace that asks anything; those before it are planned by now
            planned = plans.popleft()
            if isinstance(planned, Case):
                early.extend(islice(later, len(planned.requests) - len(early)))
                score = _score_replies(trace, planned, [early.popleft() for _ in planned.requests[: len(early)]])
            else:
                score = planned
            yield replace(score, seconds=time.perf_counter() - began)


def plan_case(needs: frozenset[str], trace: Trace, plan: Callable[[Trace], Case | Score]) -> Case | Score:
    """What is to be asked about a trace, or the score that it has without asking."""
    if reason := missing(needs, trace):
        return abstained(trace, reason)
    try:
        return plan(trace)
    except TouchstoneError as error:
        return failed(trace, str(error))
    except Exception as error:
        return failed(trace, f"{type(error).__name__}: {str(error)[:200]}")


def _score_replies(trace: Trace, case: Case, replies: Sequence[Reply | ChatError]) -> Score:
    usage = sum((reply.usage for reply in replies if isinstance(reply, Reply)), Usage())
    broken = [reply for reply in replies if isinstance(reply, ChatError)]
    good = [reply for reply in replies if isinstance(reply, Reply)]
    if broken:
        score = failed(trace, str(broken[0]))
    elif len(good) < len(case.requests):
        score = failed(trace, f"the endpoint gave {len(good)} replies to {len(case.requests)} requests")
    else:
        try:
            score = case.read(good)
        except Unreadable as error:
            score = _score_unreadable(trace, error.reply, error.why)
        except TouchstoneError as error:
            score = failed(trace, str(error))
        except Exception as error:
            score = failed(trace, f"{type(error).__name__}: {str(error)[:200]}")
    return replace(score, usage=usage)


# ------------------------------------------------------------------------------------------------ what is asked


def answer_sentences(trace: Trace) -> tuple[Part, ...]:
    return sentences(trace.answer)


def in_one_line(text: str) -> str:
    """A sentence that cannot pretend to be two numbered ones."""
    return " ".join(text.split())


def number_sentences(trace: Trace, parts: Sequence[Part]) -> str:
    return "\n".join(
        f"{number}. {in_one_line(trace.answer[part.start : part.end])}" for number, part in enumerate(parts, 1)
    )


def prompt_texts(trace: Trace) -> dict[str, str | list[str]]:
    """The places that most prompts have: the context's texts, each with its number, and the question."""
    texts = [
        f"[{context.number}]\n{context.text}" if context.number else context.text
        for context in contexts(trace)
        if context.text.strip()
    ]
    return {"context": texts, "question": trace.question or "(not logged)"}


def explain_nothing_to_judge(parts: Sequence[Part], places: Mapping[str, str | Sequence[str]]) -> str | None:
    if not parts:
        return "no sentence in the answer"
    return None if places["context"] else "no text in the context"


def explain_too_long(places: Mapping[str, str | Sequence[str]], times: int, longest: int) -> str | None:
    """Why a trace is not sent, before any prompt is built: nothing is cut off unseen."""
    characters = times * sum(
        len(text) for texts in places.values() for text in ([texts] if isinstance(texts, str) else texts)
    )
    if characters <= longest:
        return None
    return (
        f"too long for the judge: {characters:,} characters of prompts, the limit is {longest:,} (parameter `longest`)"
    )


# ---------------------------------------------------------------------------------------------- what is replied

Parsed = TypeVar("Parsed")


def read_reply(reply: Reply, prompt: Prompt, parse: Callable[[str], Parsed], *, quotes: bool = False) -> Parsed:
    """What `parse` makes of the judge's own words. Raises Unread with the reply where that is no verdict."""
    try:
        return parse(_text_of(reply, prompt, quotes=quotes))
    except (Unparsed, Refused) as why:
        raise Unreadable(reply, why) from None


def require_complete(reply: Reply, parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    """`parse`, for forms that mean nothing when they are cut off."""

    def parse_complete(text: str) -> Parsed:
        if reply.finish == "length":
            raise Unparsed("it was cut off")
        return parse(text)

    return parse_complete


def object_reader(prompt: Prompt) -> Callable[[str], dict[str, Any]]:
    """Reads the one JSON object of a reply, unless the object is one that the trace holds."""

    def parse(text: str) -> dict[str, Any]:
        extracted = only_object(text)
        if prompt.quotes(extracted.text) and len(extracted.text) >= prompts.ECHO:
            raise Unparsed("it repeats JSON of the trace")
        return extracted.value

    return parse


def _text_of(reply: Reply, prompt: Prompt, *, quotes: bool) -> str:
    """What the judge said, without its thoughts; Unparsed where it says nothing or only repeats the prompt."""
    text = reply.text
    if text.lstrip().startswith("<think>"):
        text, n = _THOUGHT.subn("", text, count=1)
        if not n:
            raise Unparsed("its thoughts do not end")
    if reply.finish == "content_filter":
        raise Refused("the endpoint's content filter stopped it")
    if reply.finish == "refusal":
        raise Refused(f"“{text.strip()[:200]}”")
    if not text.strip():
        raise Unparsed("an empty reply")
    if why := prompt.find_echo(text, quotes=quotes):
        raise Unparsed(why)
    return text


def _score_unreadable(trace: Trace, reply: Reply, why: Unparsed | Refused) -> Score:
    """A failed score that keeps the reply for reading."""
    excerpt = reply.text if len(reply.text) <= MAX_REPLY_SHOWN else f"{reply.text[:MAX_REPLY_SHOWN]}…"
    evidence = (Evidence(f"the reply: {excerpt}" if excerpt.strip() else "the reply was empty"),)
    if isinstance(why, Refused):
        reason = f"the judge declined: {why}"
    else:
        sentence = find_refusal(reply.text)
        reason = f"the judge declined: “{sentence}”" if sentence else f"unparsed: {why}"
    return replace(failed(trace, reason), evidence=evidence)


def plain_case(trace: Trace, prompt: str, longest: int, tokens: int, read: Callable[[str], float]) -> Case | Score:
    """The common recipes: one unfenced request, and a value whatever the reply."""
    if why := explain_too_long({"prompt": prompt}, 1, longest):
        return abstained(trace, why)

    def score_reply(replies: Sequence[Reply]) -> Score:
        return scored(trace, read(replies[0].text), [Evidence(f"the reply: {replies[0].text[:MAX_REPLY_SHOWN]}")])

    return Case((Request((("user", prompts.clean(prompt)),), tokens),), score_reply)

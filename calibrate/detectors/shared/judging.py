"""Score traces with a chat model: a whole batch's requests are sent together, and scores are yielded in order."""

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
MAX_REPLY_SHOWN = 2_000  # characters of an unparsed reply that the evidence quotes
BEFORE_PROMPT = "+prompt-"  # in a revision, before the version of the prompt
_THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """The requests about one trace, and the function that turns their replies into its score.

    `read` may raise Unparsed.
    """

    requests: tuple[Request, ...]
    read: Callable[[Sequence[Reply]], Score]


@dataclass(frozen=True)
class ChatDetector(ABC):
    """Base of detectors that ask a chat model. Subclasses provide `plan`, `plan_plain` and the prompt file."""

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
        """The endpoint's model and the version of the prompt."""
        return f"{chat(self.model).revision()}{BEFORE_PROMPT}{version(self.prompt)}"

    def unavailable(self) -> str | None:
        """Say what is missing: the endpoint, or a place in the prompt file."""
        return chat(self.model).unavailable() or prompts.problem(self.prompt)

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_with_judge(self.needs, traces, self._plan, chat(self.model))

    def requests(self, trace: Trace) -> list[Request]:
        """List the requests that scoring the trace would send, for an estimate of its cost."""
        case = plan_case(self.needs, trace, self._plan)
        return list(case.requests) if isinstance(case, Case) else []

    @abstractmethod
    def plan(self, trace: Trace) -> Case | Score:
        """Plan the requests about a trace that meets the needs, or score it without any."""

    @abstractmethod
    def plan_plain(self, trace: Trace) -> Case | Score:
        """Plan as the common recipe does."""

    def _plan(self, trace: Trace) -> Case | Score:
        return self.plan_plain(trace) if self.variant == "plain" else self.plan(trace)


class Refused(Exception):
    """The judge refused to judge."""


class Unreadable(Exception):
    """A reply without a verdict, and the reason."""

    def __init__(self, reply: Reply, why: Unparsed | Refused) -> None:
        super().__init__(str(why))
        self.reply, self.why = reply, why


def score_with_judge(
    needs: frozenset[str], traces: Sequence[Trace], plan: Callable[[Trace], Case | Score], endpoint: Chat
) -> Iterator[Score]:
    """Score traces: one score each, in order, as soon as its replies have arrived. An error fails only its own trace.

    Prompts are rendered a little ahead of what is in flight, so that a batch of long traces does not fill the memory.
    """
    plans: deque[Case | Score] = deque()

    def requests() -> Iterator[Request]:
        for trace in traces:
            plans.append(planned := plan_case(needs, trace, plan))
            if isinstance(planned, Case):
                yield from (replace(request, about=trace.id) for request in planned.requests)

    early: deque[Reply | ChatError] = deque()
    # Always closed at the end: requests that have not been sent by then never are.
    with closing(cast("Generator[Reply | ChatError]", endpoint.ask(requests()))) as later:
        for trace in traces:
            began = time.perf_counter()
            while not plans and (reply := next(later, None)) is not None:
                early.append(reply)  # belongs to the next trace with requests; the traces before it are planned by now
            planned = plans.popleft()
            if isinstance(planned, Case):
                early.extend(islice(later, len(planned.requests) - len(early)))
                score = _score_replies(trace, planned, [early.popleft() for _ in planned.requests[: len(early)]])
            else:
                score = planned
            yield replace(score, seconds=time.perf_counter() - began)


def plan_case(needs: frozenset[str], trace: Trace, plan: Callable[[Trace], Case | Score]) -> Case | Score:
    """Plan a trace's requests, or score it without any. An exception becomes a failed score."""
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
    """Put a sentence in one line, so that it cannot pass for two numbered ones."""
    return " ".join(text.split())


def number_sentences(trace: Trace, parts: Sequence[Part]) -> str:
    return "\n".join(
        f"{number}. {in_one_line(trace.answer[part.start : part.end])}" for number, part in enumerate(parts, 1)
    )


def prompt_texts(trace: Trace) -> dict[str, str | list[str]]:
    """Collect what most prompts quote: the context's texts, each with its number, and the question."""
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
    """Say why a trace is too long to send, before any prompt is rendered; None if it is not. Nothing is truncated."""
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
    """Parse the judge's own words. Raises Unreadable with the reply if they are not a verdict."""
    try:
        return parse(_text_of(reply, prompt, quotes=quotes))
    except (Unparsed, Refused) as why:
        raise Unreadable(reply, why) from None


def readable(read: Callable[[Reply], object]) -> Callable[[Reply], bool]:
    """Make the check of a request that tells whether its reply can be read: one that cannot is not kept."""

    def is_readable(reply: Reply) -> bool:
        try:
            read(reply)
        except Exception:  # whatever it is, the score fails, and a later run is to ask again
            return False
        return True

    return is_readable


def require_complete(reply: Reply, parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    """Wrap `parse` for formats that are meaningless when the reply is cut off."""

    def parse_complete(text: str) -> Parsed:
        if reply.finish == "length":
            raise Unparsed("it was cut off")
        return parse(text)

    return parse_complete


def object_reader(prompt: Prompt) -> Callable[[str], dict[str, Any]]:
    """Make a parser for the one JSON object of a reply, which refuses an object that the trace itself holds."""

    def parse(text: str) -> dict[str, Any]:
        extracted = only_object(text)
        if prompt.quotes(extracted.text) and len(extracted.text) >= prompts.ECHO:
            raise Unparsed("it repeats JSON of the trace")
        return extracted.value

    return parse


def _text_of(reply: Reply, prompt: Prompt, *, quotes: bool) -> str:
    """Extract the judge's words without its reasoning. Raises Unparsed if it is silent or only repeats the prompt."""
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
    """Make a failed score whose evidence quotes the reply."""
    excerpt = reply.text if len(reply.text) <= MAX_REPLY_SHOWN else f"{reply.text[:MAX_REPLY_SHOWN]}…"
    evidence = (Evidence(f"the reply: {excerpt}" if excerpt.strip() else "the reply was empty"),)
    if isinstance(why, Refused):
        reason = f"the judge declined: {why}"
    else:
        sentence = find_refusal(reply.text)
        reason = f"the judge declined: “{sentence}”" if sentence else f"unparsed: {why}"
    return replace(failed(trace, reason), evidence=evidence)


def plain_case(trace: Trace, prompt: str, longest: int, tokens: int, read: Callable[[str], float]) -> Case | Score:
    """Plan as common recipes do: one request without fences, and a value whatever the reply is."""
    if why := explain_too_long({"prompt": prompt}, 1, longest):
        return abstained(trace, why)

    def score_reply(replies: Sequence[Reply]) -> Score:
        return scored(trace, read(replies[0].text), [Evidence(f"the reply: {replies[0].text[:MAX_REPLY_SHOWN]}")])

    return Case((Request((("user", prompts.clean(prompt)),), tokens),), score_reply)

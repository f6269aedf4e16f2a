"""Alternatives: further answers to a trace's question, drawn from a chat model, for detectors that compare answers."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from calibrate import registry, settings
from calibrate.backends import files
from calibrate.backends.chat import Chat, ChatError, Estimate, Reply, Request, chat
from calibrate.backends.chat.price import guess_tokens
from calibrate.backends.chat.prompts import render
from calibrate.errors import BadInput, Unavailable
from calibrate.redaction import redactor_of
from calibrate.types import Trace, Usage
from calibrate.workflow.detection.detect import traces_of
from calibrate.workflow.detection.scoring import utc_now
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import using
from db import Store

PROMPT = "prompts/draw.txt"
LEAST_TOKENS, MOST_TOKENS = 256, 2048  # of one alternative; between them, twice what the answer has


@dataclass(slots=True)
class Counts:
    """What became of the traces. `stored` have drawn alternatives already, `given` came with some, `no_question` cannot
    be asked; `left` were not reached. `why` counts the reasons of failures."""

    total: int = 0
    drawn: int = 0
    stored: int = 0
    given: int = 0
    no_question: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    why: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        return self.drawn + self.stored + self.given + self.no_question + self.failed

    @property
    def left(self) -> int:
        return self.total - self.done

    def to_json(self) -> dict[str, Any]:
        counts = {"known" if name == "stored" else name: value for name, value in asdict(self).items()}
        return {**counts, "why": dict(self.why.most_common(20)), "left": self.left}


@dataclass(frozen=True, slots=True)
class _Draw:
    """How alternatives are drawn. `max_tokens` None: by the length of the answer."""

    n: int
    temperature: float
    max_tokens: int | None

    def __post_init__(self) -> None:
        if not 2 <= self.n <= 50:
            raise BadInput(f"{self.n} alternatives cannot be drawn; it takes 2 to compare, and 50 are the most")
        if not 0 < self.temperature <= 2:
            raise BadInput(f"the temperature cannot be {self.temperature:g}; above 0 (all would be alike) and up to 2")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise BadInput(f"an alternative cannot have {self.max_tokens} tokens; --max-tokens is 1 or more")

    def request(self, trace: Trace) -> Request:
        prompt = render(PROMPT, {"question": trace.question or "", "source": trace.context_texts})
        usual = min(MOST_TOKENS, max(LEAST_TOKENS, 2 * guess_tokens([trace.answer])))
        return Request(
            prompt.messages, max_tokens=self.max_tokens or usual, temperature=float(self.temperature), n=self.n
        )


def draw(
    store: Store,
    scope: Mapping[str, Any],
    *,
    n: int = 5,
    temperature: float = 1.0,
    max_tokens: int | None = None,
    budget: float | None = None,
    on_progress: Callable[[Counts], bool] = lambda counts: True,
) -> Counts:
    """Draw `n` alternatives for every trace of the scope that has a question and no alternatives.

    Each answer is stored as soon as it arrives, so a killed draw resumes where it stopped. Scores of detectors that
    compare answers are dropped for that trace; the next run computes them again. `budget`: US dollars that may be
    spent; when they are spent, the other traces are left. `on_progress` is called after every trace; it ends the draw
    by returning False. What TOUCHSTONE_REDACT names is replaced in them.
    Raises BadInput for impossible numbers, Unavailable without a chat endpoint.
    """
    how = _Draw(n, temperature, max_tokens)
    if budget is not None and not 0 <= budget < math.inf:
        raise BadInput(f"the budget cannot be {budget}; it is a number of US dollars, 0 or more")
    model = _require_model()
    redactor = redactor_of(settings.imports().redact)
    detectors = comparing()
    counts = Counts()
    with using(workspace_of(store, budget=budget)):
        request = {**asdict(how), "model": model.model, "revision": model.revision(), "prompt": files.version(PROMPT)}
        waiting: deque[tuple[str, Trace]] = deque()
        with closing(model.ask(_make_requests(store, scope, how, counts, waiting))) as replies:  # type: ignore[type-var]
            for reply in replies:
                content, trace = waiting.popleft()
                texts, why = _read_alternatives(reply)
                if why is None:
                    texts = redactor.redact_texts(texts, trace) if redactor is not None else texts
                    store.drawn.save(content, texts, request, detectors=detectors, now=utc_now())
                    counts.drawn += 1
                elif isinstance(reply, ChatError) and reply.final:
                    counts.why[why] += 1
                    break
                else:
                    counts.failed += 1
                    counts.why[why] += 1
                if isinstance(reply, Reply):
                    counts.usage += reply.usage
                if not on_progress(counts):
                    break
    return counts


def estimate(
    store: Store, scope: Mapping[str, Any], *, n: int = 5, temperature: float = 1.0, max_tokens: int | None = None
) -> Estimate:
    """Estimate the requests of `draw` and the most they would cost. Sends nothing. Raises as `draw` does."""
    how, model = _Draw(n, temperature, max_tokens), _require_model()
    with using(workspace_of(store)):
        return model.estimate(_make_requests(store, scope, how, Counts(), deque()))


def comparing() -> list[str]:
    """The detectors that need alternatives."""
    return [name for name in registry.names() if "alternatives" in registry.get(name).needs]


def _require_model() -> Chat:
    model = chat()
    if (why := model.unavailable()) is not None:
        raise Unavailable(why)
    return model


def _make_requests(
    store: Store, scope: Mapping[str, Any], how: _Draw, counts: Counts, waiting: deque[tuple[str, Trace]]
) -> Iterator[Request]:
    """A request for every content that wants alternatives; it joins `waiting` with its trace."""
    seen: set[str] = set()
    counts.total, chunks = traces_of(store, scope)
    for chunk in chunks:
        have = store.drawn.having([content for _, content in chunk]) | seen
        fresh = {content: pk for pk, content in reversed(chunk) if content not in have}
        counts.stored += len(chunk) - len(fresh)
        seen |= fresh.keys()
        contents = {pk: content for content, pk in fresh.items()}
        pks = [pk for pk, _ in chunk if pk in contents]
        for pk, trace in zip(pks, store.traces.load(pks), strict=True):
            if trace.alternatives:
                counts.given += 1
            elif not (trace.question or "").strip():
                counts.no_question += 1
            else:
                waiting.append((contents[pk], trace))
                yield replace(how.request(trace), about=trace.id)


def _read_alternatives(reply: Reply | ChatError) -> tuple[list[str], str | None]:
    """Read the usable texts of a reply, or the reason why there are too few to compare."""
    if isinstance(reply, ChatError):
        return [], str(reply)
    texts = [text.strip() for text in reply.texts if text.strip()]
    return texts, None if len(texts) >= 2 else f"answers with text: {len(texts)}"

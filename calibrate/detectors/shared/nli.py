"""Score a batch of traces with an NLI model: all pairs that the traces need next are judged together.

As for embedding detectors, a detector provides a generator per trace. It yields a question (texts to embed, or pairs to
judge) and is sent the answer's rows, as often as it likes, and returns the score. The generators run in step, so each
round is one call of each model over the whole batch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from calibrate.backends.embedding import Claim, Embedder
from calibrate.backends.text.refusals import find_refusal
from calibrate.backends.text.segments import Part
from calibrate.detectors.base import abstained, failed, missing
from calibrate.detectors.shared.scoring import claiming_or_all
from calibrate.types import Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

PAIRS = 2_000  # of one trace; a minute or so with a small model
SHOWN = 60  # characters of an alternative in a remark


@dataclass(frozen=True, slots=True)
class Embed:
    """Request the vectors of these texts."""

    items: list[str]


@dataclass(frozen=True, slots=True)
class Judge:
    """Request the model's verdicts on these pairs; from an NLI model, on (premise, hypothesis), the probabilities of
    entailment, neutral and contradiction."""

    items: list[tuple[str, str]]


class PairModel(Protocol):
    """A model that judges pairs of texts: the NLI model, and those of groundedness."""

    def unavailable(self) -> str | None: ...

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Judge pairs: an array with one row, or one list, per pair."""
        ...


Question = Embed | Judge
Asking = Generator[Question, "Rows", Score]
Ask = Callable[[Trace], Asking]


# ------------------------------------------------------------------------------------------------ batches of traces


def score_in_rounds(
    needs: frozenset[str], traces: Sequence[Trace], ask: Ask, model: PairModel, embedder: Embedder | None = None
) -> Iterator[Score]:
    """Score traces: one score each, in order, whatever happens to the others."""
    if (why := model.unavailable() or (embedder.unavailable() if embedder else None)) is not None:
        yield from (failed(trace, why) for trace in traces)
        return
    trials = [_Trial(trace, ask(trace)) for trace in traces]
    for trial in trials:
        if reason := missing(needs, trial.trace):
            trial.score = abstained(trial.trace, reason)
        else:
            trial.step(None)
    while waiting := [trial for trial in trials if trial.score is None]:
        if embedder is not None:
            _run_round([trial for trial in waiting if isinstance(trial.question, Embed)], embedder.encode)
        _run_round([trial for trial in waiting if isinstance(trial.question, Judge)], model.probabilities)
    for trial in trials:
        assert trial.score is not None
        yield replace(trial.score, seconds=trial.seconds)


@dataclass(slots=True)
class _Trial:
    """One trace whose score is being computed."""

    trace: Trace
    asking: Asking
    question: Question | None = None
    score: Score | None = None
    seconds: float = 0.0

    def step(self, rows: Rows | None) -> None:
        began = time.perf_counter()
        try:
            self.question = next(self.asking) if rows is None else self.asking.send(rows)
        except StopIteration as done:
            self.question, self.score = None, done.value
        except Exception as error:
            self.fail(error)
        self.seconds += time.perf_counter() - began

    def fail(self, error: Exception) -> None:
        self.question, self.score = None, failed(self.trace, f"{type(error).__name__}: {str(error)[:200]}")


def _run_round(waiting: Sequence[_Trial], answer: Callable[[list[Any]], Rows]) -> None:
    """Answer the questions of all of them in one call, and advance each."""
    items: list[list[Hashable]] = [list(trial.question.items) for trial in waiting if trial.question]
    places = {item: row for row, item in enumerate(dict.fromkeys(item for batch in items for item in batch))}
    if not waiting:
        return
    began = time.perf_counter()
    try:
        rows = answer(list(places))
    except Exception as error:
        if len(waiting) == 1:
            waiting[0].fail(error)
        for trial in waiting if len(waiting) > 1 else ():  # one by one, so that only the culprit fails
            _run_round([trial], answer)
        return
    share = (time.perf_counter() - began) / max(1, sum(map(len, items)))
    for trial, batch in zip(waiting, items, strict=True):
        trial.seconds += share * len(batch)
        trial.step(rows[[places[item] for item in batch]])


# ------------------------------------------------------------------------------------------------ texts that fit


class Fits(Protocol):
    """A model that reads only so much at once."""

    def fit(self, text: str, parts: Iterable[Part]) -> list[Part]: ...

    def windows(self, text: str, *, sentences_per_window: int) -> tuple[Part, ...]: ...


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts texts to what each of one or two models reads. `claims` and `cut` take it in place of a model."""

    first: Fits
    second: Fits | None = None

    def fit(self, text: str, parts: Iterable[Part]) -> list[Part]:
        cut = self.first.fit(text, parts)
        return self.second.fit(text, cut) if self.second else cut

    def windows(self, text: str, *, sentences_per_window: int) -> tuple[Part, ...]:
        cut = self.first.windows(text, sentences_per_window=sentences_per_window)
        return tuple(self.second.fit(text, cut)) if self.second else cut


def remark_on_parts(trace: Trace, claims: Sequence[Claim]) -> str | None:
    """Write a remark if a sentence was longer than a model reads and its parts were judged one by one."""
    whole = set(claiming_or_all(trace))
    spans = Counter((claim.start, claim.end) for claim in claims)
    cut = sum(count for span, count in spans.items() if count > 1 or span not in whole)
    return f"{cut} of the {len(claims)} texts judged are parts of a sentence too long for the model" if cut else None


# ------------------------------------------------------------------------------------------------ alternatives


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the trace's alternatives, counted from 1, and whether it declines to answer."""

    number: int
    text: str
    declines: bool

    @property
    def shown(self) -> str:
        text = " ".join(self.text.split())
        return f"“{text[:SHOWN]}…”" if len(text) > SHOWN else f"“{text}”"


def alternatives(trace: Trace) -> list[Alternative]:
    """List the trace's alternatives that are not empty."""
    return [
        Alternative(number, text, find_refusal(text) is not None)
        for number, text in enumerate(trace.alternatives, 1)
        if text.strip()
    ]


def explain_too_few(alternatives: Sequence[Alternative]) -> str | None:
    """Say why these alternatives cannot be compared, or None."""
    if alternatives and all(alternative.declines for alternative in alternatives):
        return "all alternatives are refusals"
    return "fewer than two alternatives that are not empty" if len(alternatives) < 2 else None

"""Score a batch of traces with an embedding model: all texts that the traces need next are embedded together.

A detector provides a generator per trace. It yields texts and is sent their vectors, as often as it likes, and returns
the score. The generators run in step, so each round is one `encode` call over the batch's distinct texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from calibrate.backends.embedding import PACKAGED, Embedder, embedder
from calibrate.detectors.base import abstained, failed, missing
from calibrate.types import Score, Trace

# It is sent one row per text; with `tokens`, a list of arrays.
Asking = Generator[list[str], Any, Score]
Ask = Callable[[Trace], Asking]


@dataclass(frozen=True)
class EmbeddingDetector:
    """Base of detectors with an embedding model: the parameter `model`, and what depends on it."""

    variant: Literal["default", "plain"] = "default"
    model: str = field(
        default=PACKAGED,
        metadata={"help": "Embedding model: the packaged one, a directory, or a Hugging Face id already downloaded."},
    )

    def revision(self) -> str:
        return embedder(self.model).revision()

    def unavailable(self) -> str | None:
        return embedder(self.model).unavailable()


def score_in_rounds(
    needs: frozenset[str], traces: Sequence[Trace], ask: Ask, model: Embedder, *, tokens: bool = False
) -> Iterator[Score]:
    """Score traces: one score each, in order, whatever happens to the others.

    A generator is sent one vector per text, or with `tokens` one array of token vectors per text.
    """
    if (why := model.unavailable()) is not None:
        yield from (failed(trace, why) for trace in traces)
        return
    trials = [_Trial(trace, ask) for trace in traces]
    for trial in trials:
        if reason := missing(needs, trial.trace):
            trial.score = abstained(trial.trace, reason)
        else:
            trial.step(None)
    while waiting := [trial for trial in trials if trial.score is None]:
        _run_round(waiting, model.tokens if tokens else model.encode)
    for trial in trials:
        assert trial.score is not None
        yield replace(trial.score, seconds=trial.seconds)


def split_by_size(traces: Sequence[Trace], characters: int) -> Iterator[Sequence[Trace]]:
    """Split traces, in order, into groups of so many characters in all: token vectors are large."""
    start = size_so_far = 0
    for place, trace in enumerate(traces):
        size = len(trace.answer) + sum(map(len, trace.context_texts)) + sum(map(len, trace.alternatives))
        if size_so_far and size_so_far + size > characters:
            yield traces[start:place]
            start, size_so_far = place, 0
        size_so_far += size
    yield traces[start:]


def _run_round(waiting: Sequence[_Trial], encode: Callable[[Sequence[str]], Any]) -> None:
    """Embed the texts that all of them requested in one call, and advance each."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(text for trial in waiting for text in trial.requested))}
    began = time.perf_counter()
    try:
        vectors = encode(list(rows))
    except Exception as error:
        for trial in waiting:
            trial.fail(error)
        return
    share = (time.perf_counter() - began) / max(1, sum(len(trial.requested) for trial in waiting))
    for trial in waiting:
        trial.seconds += share * len(trial.requested)
        places = [rows[text] for text in trial.requested]
        trial.step([vectors[place] for place in places] if isinstance(vectors, list) else vectors[places])


@dataclass(slots=True)
class _Trial:
    """One trace whose score is being computed."""

    trace: Trace
    ask: Ask
    asking: Asking | None = None
    requested: list[str] = field(default_factory=list)
    score: Score | None = None
    seconds: float = 0.0

    def step(self, vectors: Any) -> None:
        began = time.perf_counter()
        try:
            if vectors is None or self.asking is None:
                self.asking = self.ask(self.trace)
                self.requested = next(self.asking)
            else:
                self.requested = self.asking.send(vectors)
        except StopIteration as done:
            self.score = done.value
        except Exception as error:
            self.fail(error)
        self.seconds += time.perf_counter() - began

    def fail(self, error: Exception) -> None:
        self.score = failed(self.trace, f"{type(error).__name__}: {str(error)[:200]}")

"""Running detectors over traces: what is missing, in batches, kept as it goes.

A score belongs to a trace's content, a detector with its version and parameters, and the revision of the models
behind it. Whatever the store has under that key is not computed again, so a run that was stopped or killed goes on
where it was.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Protocol

from calibrate.backends.text.refusals import find_refusal
from calibrate.detectors.base import Detector, abstained, failed, missing
from calibrate.types import Score, Trace, Usage

BATCH = 16  # traces a detector is given at once; between batches a run can be stopped
LOAD = 256  # traces in memory at once
KEEP_EVERY = 0.5  # seconds of work that a killed run may lose


class ScoreCache(Protocol):
    """A store of scores, as far as a run needs one."""

    def statuses(self, config_id: int, hashes: Sequence[str]) -> dict[str, str]:
        """Content hash → status of the scores that need not be computed."""
        ...

    def save(self, config_id: int, scores: Sequence[tuple[str, Score]], *, now: datetime) -> None: ...


@dataclass(slots=True)
class Tally:
    """What a run did with one detector. `why` counts the reasons of what did not score; `seconds` is time in it."""

    scored: int = 0
    abstained: int = 0
    failed: int = 0
    refusal: int = 0
    reused: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    why: Counter[str] = field(default_factory=Counter)

    def count(self, score: Score) -> None:
        setattr(self, score.status, getattr(self, score.status) + 1)
        if score.reason:
            self.why["a refusal" if score.status == "refusal" else score.reason] += 1
        if score.usage:
            self.usage += score.usage

    @property
    def n_attempted(self) -> int:
        return self.scored + self.abstained + self.failed + self.refusal

    def to_json(self) -> dict[str, object]:
        return {
            "scored": self.scored,
            "abstained": self.abstained,
            "failed": self.failed,
            "refusals": self.refusal,
            "reused": self.reused,
            "usage": asdict(self.usage),
            "seconds": round(self.seconds, 3),
            "why": dict(self.why.most_common(20)),
        }


@dataclass(frozen=True, slots=True)
class Job:
    """A detector and the configuration its scores are kept under."""

    detector: Detector
    config_id: int


def run(
    jobs: Sequence[Job],
    chunks: Iterable[Sequence[tuple[int, str]]],
    *,
    cache: ScoreCache,
    load: Callable[[Sequence[int]], list[Trace]],
    now: Callable[[], datetime],
    on_progress: Callable[[int, dict[str, Tally]], bool],
) -> dict[str, Tally]:
    """Scores every trace of `chunks` ((key, content hash) pairs) with every job; returns a tally per detector.

    `on_progress(done, tallies)` hears of every (trace, detector) pair done, at least between batches; once it returns
    False the run keeps what it has and ends.
    """
    tallies = {job.detector.name: Tally() for job in jobs}
    keeper = _Keeper(cache, now)
    finished = 0
    for chunk in chunks:
        hashes = list(dict.fromkeys(content for _, content in chunk))
        todo = {job.config_id: _find_todo(job, chunk, hashes, cache) for job in jobs}
        for job in jobs:
            reused = len(chunk) - len(todo[job.config_id])
            tallies[job.detector.name].reused += reused
            finished += reused
        pending = [pk for pk, _ in chunk if any(pk in pairs for pairs in todo.values())]
        for start in range(0, len(pending), LOAD):
            pks = pending[start : start + LOAD]
            traces = dict(zip(pks, load(pks), strict=True))
            for job in jobs:
                pairs = [(todo[job.config_id][pk], trace) for pk, trace in traces.items() if pk in todo[job.config_id]]
                for content, score in _score_pairs(job.detector, pairs, tallies[job.detector.name]):
                    keeper.add(job.config_id, content, score)
                    finished += 1
                    if keeper.due() and not on_progress(finished, tallies):
                        return tallies
        keeper.flush()
        if not on_progress(finished, tallies):
            return tallies
    return tallies


def _score_pairs(detector: Detector, pairs: Sequence[tuple[str, Trace]], tally: Tally) -> Generator[tuple[str, Score]]:
    """(content hash, score) as each is there, counted."""
    size = getattr(type(detector), "batch", BATCH)
    for start in range(0, len(pairs), size):
        batch = pairs[start : start + size]
        began = time.perf_counter()
        with closing(score_stream(detector, [trace for _, trace in batch])) as scores:
            for (content, _), score in zip(batch, scores, strict=True):
                tally.seconds += time.perf_counter() - began
                tally.count(score)
                yield content, score
                began = time.perf_counter()


def score_batch(detector: Detector, traces: Sequence[Trace]) -> list[Score]:
    """One score for each trace, in order, whatever the detector does."""
    return list(score_stream(detector, traces))


def score_stream(detector: Detector, traces: Sequence[Trace]) -> Generator[Score]:
    """One score for each trace, in order, as soon as it is there.

    A trace that lacks what the detector needs abstains, and a refusal is one, without asking it. If the detector
    raises, the traces it still owed are tried one by one and only the culprit fails. Closing the stream stops the
    detector.
    """
    early_scores = [_score_without_detector(detector, trace) for trace in traces]
    with closing(
        _run_safely(detector, [t for t, score in zip(traces, early_scores, strict=True) if score is None])
    ) as answers:
        for score in early_scores:
            yield score if score is not None else next(answers)


def _score_without_detector(detector: Detector, trace: Trace) -> Score | None:
    """The score that needs no detector, or None."""
    if not getattr(type(detector), "scores_refusals", False) and (sentence := find_refusal(trace.answer)):
        return Score(trace.id, None, f"a refusal: “{sentence}”", "refusal")
    reason = missing(detector.needs, trace)
    return abstained(trace, reason) if reason else None


def _run_safely(detector: Detector, traces: Sequence[Trace]) -> Generator[Score]:
    if not traces:
        return
    finished = 0
    try:
        for score in detector.score(traces):
            if finished == len(traces):
                raise ValueError(f"more scores than the {len(traces)} traces it was given")
            yield _check_score(traces[finished], score)
            finished += 1
    except Exception as error:
        owed = traces[finished:]
        if len(traces) == 1 and owed:
            yield failed(traces[0], f"{type(error).__name__}: {str(error)[:200]}")
        else:
            for trace in owed:
                yield from _run_safely(detector, [trace])
        return
    for trace in traces[finished:]:
        yield failed(trace, f"the detector gave {finished} scores for {len(traces)} traces")


def _check_score(trace: Trace, score: Score) -> Score:
    if score.trace_id != trace.id:
        return failed(trace, f"the detector gave a score of trace {score.trace_id!r} in its place")
    if score.status == "scored" and (score.value is None or not math.isfinite(score.value)):
        return failed(trace, f"the score was {score.value}, not a finite number")
    return score


def _find_todo(job: Job, chunk: Sequence[tuple[int, str]], hashes: Sequence[str], cache: ScoreCache) -> dict[int, str]:
    """The first trace of each content that has no score yet, by its key."""
    done = set(cache.statuses(job.config_id, hashes))
    todo = {}
    for pk, content in chunk:
        if content not in done:
            done.add(content)
            todo[pk] = content
    return todo


class _Keeper:
    """Holds fresh scores for a moment and saves them together: a transaction for every score would be slow."""

    def __init__(self, cache: ScoreCache, now: Callable[[], datetime]) -> None:
        self._cache, self._now = cache, now
        self._fresh: dict[int, list[tuple[str, Score]]] = {}
        self._last = time.monotonic()

    def add(self, config_id: int, content: str, score: Score) -> None:
        self._fresh.setdefault(config_id, []).append((content, score))

    def due(self) -> bool:
        """True when it is time to save, which it then has done."""
        if time.monotonic() - self._last < KEEP_EVERY:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        for config_id, scores in self._fresh.items():
            self._cache.save(config_id, scores, now=self._now())
        self._fresh.clear()
        self._last = time.monotonic()

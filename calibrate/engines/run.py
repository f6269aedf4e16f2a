"""Run detectors over traces: compute the missing scores in batches and save them on the way.

The key of a score is the trace's content, the detector with its version and parameters, and the revision of its
models. A score that exists under its key is not computed again, so a stopped or killed run resumes where it was.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Protocol

from calibrate.backends.text.refusals import find_refusal
from calibrate.detectors.base import Detector, abstained, failed, missing
from calibrate.types import Score, Trace, Usage

BATCH = 16  # traces passed to a detector at once; a run can be stopped between batches
LOAD = 256  # traces in memory at once
SAVE_EVERY = 0.5  # seconds of work that a killed run may lose


Pairs = Sequence[tuple[int, str]]
"""(Key, content hash) of traces."""


class ScoreCache(Protocol):
    """What a run needs of a store of scores."""

    def statuses(self, config_id: int, hashes: Sequence[str]) -> dict[str, str]:
        """Map content hash to status, for the scores that need not be computed."""
        ...

    def save(self, config_id: int, scores: Sequence[tuple[str, Score]], *, now: datetime) -> None: ...


@dataclass(slots=True)
class Tally:
    """What a run did with one detector. `why` counts the reasons for missing scores, of which `faults` are those of
    failures; `seconds` is the time in the detector, `worker_seconds` the time of workers with their start, loading and
    saving, and `memory` the most that one of them held, in bytes.

    `failed_on_all`: it failed, and no trace that the run was about has a score of it, from this run or an earlier one.
    `unavailable` says why it could not run at all, and the remedy.
    """

    scored: int = 0
    abstained: int = 0
    failed: int = 0
    refusal: int = 0
    reused: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    worker_seconds: float = 0.0
    memory: int = 0
    why: Counter[str] = field(default_factory=Counter)
    faults: set[str] = field(default_factory=set)
    failed_on_all: bool = False
    unavailable: str | None = None

    def add(self, other: Tally) -> None:
        """Add what another worker did with the same detector."""
        for name in ("scored", "abstained", "failed", "refusal", "reused", "usage", "seconds", "worker_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.memory = max(self.memory, other.memory)
        self.why.update(other.why)
        self.faults |= other.faults

    def count(self, score: Score) -> None:
        setattr(self, score.status, getattr(self, score.status) + 1)
        if score.reason:
            self.why["a refusal" if score.status == "refusal" else score.reason] += 1
            if score.status == "failed":
                self.faults.add(score.reason)
        if score.usage:
            self.usage += score.usage

    def _reasons(self) -> list[tuple[str, int]]:
        """The most frequent first; where a detector scored nothing, why it failed before why it abstained."""
        ordered = self.why.most_common()
        if self.failed_on_all:
            ordered.sort(key=lambda reason: reason[0] not in self.faults)
        return ordered

    @property
    def n_attempted(self) -> int:
        return self.scored + self.abstained + self.failed + self.refusal

    @property
    def n_finished(self) -> int:
        return self.reused + self.n_attempted

    def to_json(self) -> dict[str, object]:
        return {
            "scored": self.scored,
            "abstained": self.abstained,
            "failed": self.failed,
            "refusals": self.refusal,
            "reused": self.reused,
            "usage": asdict(self.usage),
            "seconds": round(self.seconds, 6),
            "worker_seconds": round(self.worker_seconds, 6),
            "memory": self.memory,
            "why": dict(self._reasons()[:20]),
            "failed_on_all": self.failed_on_all,
            "unavailable": self.unavailable,
        }


@dataclass(frozen=True, slots=True)
class Job:
    """A detector and the configuration that its scores are saved under."""

    detector: Detector
    config_id: int


def run(
    jobs: Sequence[Job],
    chunks: Iterable[Pairs],
    tallies: dict[str, Tally] | None = None,
    *,
    cache: ScoreCache,
    load: Callable[[Sequence[int]], list[Trace]],
    now: Callable[[], datetime],
    on_progress: Callable[[int, dict[str, Tally]], bool],
) -> dict[str, Tally]:
    """Score every trace of `chunks` with every job. Returns a tally per detector: those of `tallies`, if given, count
    on.

    `on_progress(finished, tallies)` is called with the number of (trace, detector) pairs finished, at least between
    batches. Once it returns False, the run saves what it has and ends.
    """
    tallies = {job.detector.name: Tally() for job in jobs} if tallies is None else tallies
    buffer = _ScoreBuffer(cache, now)
    for chunk in chunks:
        hashes = list(dict.fromkeys(content for _, content in chunk))
        todo = {job.config_id: _find_todo(job, chunk, hashes, cache) for job in jobs}
        for job in jobs:
            tallies[job.detector.name].reused += len(chunk) - len(todo[job.config_id])
        pending = [pk for pk, _ in chunk if any(pk in pairs for pairs in todo.values())]
        for start in range(0, len(pending), LOAD):
            pks = pending[start : start + LOAD]
            traces = dict(zip(pks, load(pks), strict=True))
            for job in jobs:
                pairs = [(todo[job.config_id][pk], trace) for pk, trace in traces.items() if pk in todo[job.config_id]]
                for content, score in _score_pairs(job.detector, pairs, tallies[job.detector.name]):
                    buffer.add(job.config_id, content, score)
                    if buffer.save_if_due() and not on_progress(count_finished(tallies), tallies):
                        return tallies
        buffer.flush()
        for job in jobs:
            tallies[job.detector.name].memory = peak_memory()
        if not on_progress(count_finished(tallies), tallies):
            return tallies
    return tallies


def peak_memory() -> int:
    """The most memory that this process has held, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def count_finished(tallies: Mapping[str, Tally]) -> int:
    """The (trace, detector) pairs that are finished."""
    return sum(tally.n_finished for tally in tallies.values())


def _score_pairs(detector: Detector, pairs: Sequence[tuple[str, Trace]], tally: Tally) -> Generator[tuple[str, Score]]:
    """Yield each (content hash, score) as soon as it is computed, and count it."""
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
    """Score traces: one score each, in order, whatever the detector does."""
    return list(score_stream(detector, traces))


def score_stream(detector: Detector, traces: Sequence[Trace]) -> Generator[Score]:
    """Score traces: one score each, in order, as soon as it is computed.

    The detector does not see a trace that lacks what it needs (abstained) or declines to answer (refusal). If the
    detector raises, the remaining traces are scored one by one, so that only the culprit fails. Closing the stream
    stops the detector.
    """
    early_scores = [_score_without_detector(detector, trace) for trace in traces]
    with closing(
        _run_safely(detector, [t for t, score in zip(traces, early_scores, strict=True) if score is None])
    ) as answers:
        for score in early_scores:
            yield score if score is not None else next(answers)


def _score_without_detector(detector: Detector, trace: Trace) -> Score | None:
    """Return the score of a trace that the detector need not see, or None."""
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
    except BaseException as error:
        if not _is_of_detector(error):
            raise
        owed = traces[finished:]
        if len(traces) == 1 and owed:
            yield failed(traces[0], f"{type(error).__name__}: {str(error)[:200]}")
        else:
            for trace in owed:
                yield from _run_safely(detector, [trace])
        return
    for trace in traces[finished:]:
        yield failed(trace, f"the detector gave {finished} scores for {len(traces)} traces")


def _is_of_detector(error: BaseException) -> bool:
    """Tell a detector's own error from the end of the stream, and from a signal: that reaches the main thread alone."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return threading.current_thread() is not threading.main_thread()
    return not isinstance(error, GeneratorExit)


def _check_score(trace: Trace, score: Score) -> Score:
    if score.trace_id != trace.id:
        return failed(trace, f"the detector gave a score of trace {score.trace_id!r} in its place")
    if score.status == "scored" and (score.value is None or not math.isfinite(score.value)):
        return failed(trace, f"the score was {score.value}, not a finite number")
    return score


def _find_todo(job: Job, chunk: Pairs, hashes: Sequence[str], cache: ScoreCache) -> dict[int, str]:
    """Find the traces to score: of each content without a score, the first trace's key, mapped to the content hash."""
    done = set(cache.statuses(job.config_id, hashes))
    todo = {}
    for pk, content in chunk:
        if content not in done:
            done.add(content)
            todo[pk] = content
    return todo


class _ScoreBuffer:
    """Collects new scores and saves them together: a transaction per score would be slow."""

    def __init__(self, cache: ScoreCache, now: Callable[[], datetime]) -> None:
        self._cache, self._now = cache, now
        self._fresh: dict[int, list[tuple[str, Score]]] = {}
        self._last = time.monotonic()

    def add(self, config_id: int, content: str, score: Score) -> None:
        self._fresh.setdefault(config_id, []).append((content, score))

    def save_if_due(self) -> bool:
        """Save if it is time to. Returns whether it was."""
        if time.monotonic() - self._last < SAVE_EVERY:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        for config_id, scores in self._fresh.items():
            self._cache.save(config_id, scores, now=self._now())
        self._fresh.clear()
        self._last = time.monotonic()

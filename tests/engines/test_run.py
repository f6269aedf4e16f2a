"""A run's stream of scores: in order, as they come, stopped at once, and no detector can derail it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from calibrate.detectors.base import scored
from calibrate.engines import run as module
from calibrate.engines.run import Job, run, score_batch
from calibrate.types import FlagWhen, Score, Trace, Usage

NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Kept(dict[str, Score]):
    def statuses(self, config_id: int, hashes: Sequence[str]) -> dict[str, str]:
        return {one: self[one].status for one in hashes if one in self and self[one].status != "failed"}

    def save(self, config_id: int, scores: Sequence[tuple[str, Score]], *, now: datetime) -> None:
        self.update(scores)


@dataclass(frozen=True)
class Lengths:
    """Scores how long an answer is; `asked` and `closed` tell what it was made to do."""

    name: ClassVar[str] = "lengths"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Lengths"
    unit: ClassVar[str] = "characters"
    needs: ClassVar[frozenset[str]] = frozenset({"answer"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1e9)
    usual_threshold: ClassVar[float] = 1.0
    batch: ClassVar[int] = 50
    asked: ClassVar[list[str]] = []
    closed: ClassVar[list[bool]] = []

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        try:
            for trace in traces:
                self.asked.append(trace.id)
                if trace.answer == "raise":
                    raise RuntimeError("no")
                score = scored(trace, len(trace.answer))
                yield Score(score.trace_id, score.value, usage=Usage(requests=1, cost=0.25))
        finally:
            self.closed.append(True)


@pytest.fixture(autouse=True)
def fresh() -> None:
    Lengths.asked.clear()
    Lengths.closed.clear()


def traces(*answers: str) -> list[Trace]:
    return [Trace(f"t{i}", answer) for i, answer in enumerate(answers)]


def go(given: Sequence[Trace], on_progress: Any = lambda done, tallies: True) -> tuple[Kept, Any]:
    kept, pairs = Kept(), [(i, trace.content_hash()) for i, trace in enumerate(given)]
    tallies = run(
        [Job(Lengths(), 1)],
        [pairs],
        cache=kept,
        load=lambda pks: [given[pk] for pk in pks],
        now=lambda: NOW,
        on_progress=on_progress,
    )
    return kept, tallies["lengths"]


def test_one_culprit_fails_alone_and_nothing_is_scored_twice() -> None:
    given = traces("a", "bb", "raise", "dddd", "")
    scores = score_batch(Lengths(), given)
    assert [score.value for score in scores] == [1, 2, None, 4, None]
    assert [score.status for score in scores] == ["scored", "scored", "failed", "scored", "abstained"]
    assert scores[2].reason == "RuntimeError: no"
    assert Lengths.asked == ["t0", "t1", "t2", "t2", "t3"]  # the culprit is tried once more, alone


def test_a_stop_takes_effect_within_a_batch_and_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    given = traces(*(f"answer {i}" for i in range(50)))
    kept, tally = go(given, lambda done, tallies: done < 7)
    assert len(kept) == tally.scored == 7
    assert Lengths.closed == [True]


def test_a_run_counts_what_it_cost() -> None:
    _, tally = go(traces("a", "bb", "ccc"))
    assert tally.to_json()["usage"] == {
        "requests": 3, "cached": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.75,
    }  # fmt: skip


def test_a_refusal_is_not_asked_about() -> None:
    said = "I'm sorry, but I cannot answer that based on the provided documents."
    kept, tally = go(traces("Paris.", said))
    assert Lengths.asked == ["t0"]
    (refused,) = [score for score in kept.values() if score.status == "refusal"]
    assert refused.value is None
    assert said[:20] in (refused.reason or "")
    assert tally.to_json()["refusals"] == 1


def test_a_score_of_another_trace_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(self: Lengths, given: Sequence[Trace]) -> Iterator[Score]:
        yield from (scored(trace, 1.0) for trace in reversed(given))

    monkeypatch.setattr(Lengths, "score", turned)
    assert [score.status for score in score_batch(Lengths(), traces("a", "b"))] == ["failed", "failed"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_scores_is_said(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    def some(self: Lengths, given: Sequence[Trace]) -> Iterator[Score]:
        yield from (scored(given[min(i, len(given) - 1)], 1.0) for i in range(count))

    monkeypatch.setattr(Lengths, "score", some)
    scores = score_batch(Lengths(), traces("a", "b"))
    assert len(scores) == 2
    if count < 2:
        assert "scores for 2 traces" in (scores[-1].reason or "")

"""One call from an answer to a verdict, whatever goes wrong on the way."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import pytest

from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.detectors.word_overlap import WordOverlap
from calibrate.errors import BadInput
from calibrate.runtime import Alerts, Guard, OnMissing, decide
from calibrate.runtime.planning import revision_of
from calibrate.thresholds import Sampling
from calibrate.types import Source, Trace
from calibrate.workspace import Workspace, using
from tests.runtime.serving import serving
from tests.thresholds.make import entry, release

FILE = release({
    "token_overlap": entry(0.5, tier="page", params={}, version=TokenOverlap.version),
    "word_overlap": entry(0.5, params={}),
    "gone": entry(0.5),
})  # fmt: skip
SAID = Source("1", "The bridge over the river was built in 1931.")


def trace(name: str, answer: str) -> Trace:
    return Trace(name, answer, question="When?", sources=(SAID,))


GOOD, BAD = trace("good", SAID.text), trace("bad", "Cows graze under seven purple moons.")


def test_a_trace_is_decided_as_its_scores_are() -> None:
    guard = Guard(FILE)
    assert (guard.check(GOOD).verdict, guard.check(BAD).verdict) == ("ACCEPT", "REJECT")
    decision = guard.check(BAD)
    assert (decision.flags, decision.tier, decision.version) == (("token_overlap", "word_overlap"), "page", 2)
    assert decision.missing == ("gone",)
    assert guard.check_many([BAD, GOOD]) == [guard.check(BAD), guard.check(GOOD)]
    assert guard.check_many([]) == []
    only = Guard(FILE, detectors=["word_overlap"]).check(BAD)
    assert (only.flags, only.missing) == (("word_overlap",), ("gone", "token_overlap"))


def test_it_is_total(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    assert Guard(FILE).check(Trace("", "")).verdict == "REVIEW"

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(WordOverlap, "score", broken)
    assert Guard(FILE).check(BAD).flags == ("token_overlap",)  # one detector less
    monkeypatch.setattr("calibrate.engines.run.score_stream", broken)
    with caplog.at_level(logging.ERROR, "touchstone"):
        assert Guard(FILE, deadline=None).check_many([BAD, GOOD]) == [decide(FILE, {})] * 2
        Guard(FILE, deadline=None).check(BAD)
    assert "scoring failed" in caplog.text
    in_time = Guard(FILE).check_many([BAD, GOOD])
    assert [dataclasses.replace(one, reasons=decide(FILE, {}).reasons) for one in in_time] == [decide(FILE, {})] * 2
    assert "MemoryError" in in_time[0].reasons[0]


NOWHERE = dataclasses.replace(BAD, sources=())
REFUSAL = trace("no", "I'm sorry, I cannot answer that question.")


@pytest.mark.parametrize(("on_missing", "verdict"), [("accept", "ACCEPT"), ("review", "REVIEW"), ("reject", "REJECT")])
def test_an_answer_that_nothing_could_score_is_not_accepted_unseen(on_missing: OnMissing, verdict: str) -> None:
    guard = Guard(release({"word_overlap": entry(0.5, params={})}), on_missing=on_missing)
    for unseen in (NOWHERE, dataclasses.replace(BAD, answer=" ")):
        decision = guard.check(unseen)
        assert (decision.verdict, decision.tier, decision.unscored) == (verdict, "off", True)
    assert guard.check(NOWHERE).reasons == ("nothing was scored: no context (word_overlap)",)
    assert guard.check(GOOD).verdict == "ACCEPT"
    assert Guard(FILE, detectors=["gone"], on_missing=on_missing).check(GOOD).verdict == verdict
    assert Guard(FILE, detectors=[], on_missing=on_missing).check(GOOD).verdict == verdict


def test_a_refusal_and_what_sampling_leaves_out_are_not_unscored() -> None:
    declined = Guard(FILE, on_missing="reject").check(REFUSAL)
    assert (declined.verdict, declined.unscored) == ("ACCEPT", False)
    assert declined.reasons == ("nothing was to be scored: the answer declines to answer",)
    sampled = entry(0.5, params={}, sampling=Sampling(1.0, {"stakes": "high"}))
    guard = Guard(release({"word_overlap": sampled}), on_missing="reject")
    low, high = guard.check(NOWHERE), guard.check(dataclasses.replace(NOWHERE, attributes={"stakes": "high"}))
    assert (low.verdict, low.unscored, low.missing) == ("ACCEPT", False, ("word_overlap",))
    assert low.reasons[0].startswith("nothing was to be scored: runs on")
    assert (high.verdict, high.unscored) == ("REJECT", True)
    both = Guard(release({"token_overlap": FILE.detectors["token_overlap"], "word_overlap": sampled})).check(NOWHERE)
    assert both.unscored  # one was to run, and could not
    chosen = Guard(release({"gone": entry(0.5), "word_overlap": sampled}), detectors=["word_overlap"])
    assert not chosen.check(NOWHERE).unscored


def test_that_answers_come_empty_or_unscored_is_said_once_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    file = release({"word_overlap": entry(0.5, params={})})
    for guard in (Guard(file), Guard(file, on_missing="reject")):
        guard.check_many([GOOD, BAD, REFUSAL])
        assert caplog.messages == []
    for guard in (Guard(file), Guard(file)):
        guard.check_many([NOWHERE, NOWHERE, dataclasses.replace(BAD, answer="")])
    ends = "its verdict is REVIEW, as on_missing='review' says. This is logged once"
    assert caplog.messages == [
        f"an answer was not scored: no context (word_overlap); {ends}",
        f"an answer was empty: empty answer (word_overlap); {ends}",
    ]


@pytest.mark.parametrize(
    "wrong", [{"answer": None}, {"sources": ["abc"]}, {"sources": {"1": "abc"}}, {"attributes": 1}]
)
def test_a_trace_of_wrong_types_fails_alone_and_says_which_field(
    wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    guard = Guard(FILE)
    caplog.clear()
    culprit = dataclasses.replace(BAD, **wrong)
    for _ in range(3):
        first, second, third = guard.check_many([BAD, culprit, GOOD])
        assert (first.verdict, second.verdict, third.verdict) == ("REJECT", "REVIEW", "ACCEPT")
        (reason,) = second.reasons
        assert reason.startswith(f"nothing was scored: {next(iter(wrong))} ")
        assert second.missing == ("gone", "token_overlap", "word_overlap")
    assert third.scored == ("token_overlap", "word_overlap")
    (said,) = [one for one in caplog.records if "a trace" in one.getMessage()]
    assert next(iter(wrong)) in said.getMessage()
    assert said.exc_info is None


def test_what_is_no_trace_at_all_fails_alone() -> None:
    guard = Guard(FILE)
    for wrong in (None, {"answer": "x"}, "an answer"):
        one, other = guard.check_many([wrong, BAD])  # type: ignore[list-item]
        assert (one.verdict, other.verdict) == ("REVIEW", "REJECT")
        assert "give a calibrate.types.Trace" in one.reasons[0]


class Odd(dict[str, Any]):
    def get(self, *_: object) -> Any:
        raise KeyError("no such thing")


def test_one_that_makes_scoring_itself_raise_fails_alone_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    sampled = dataclasses.replace(FILE.detectors["word_overlap"], sampling=Sampling(1.0, {"stakes": "high"}))
    guard = Guard(release({"token_overlap": FILE.detectors["token_overlap"], "word_overlap": sampled}))
    culprit = dataclasses.replace(BAD, attributes=Odd())
    for _ in range(3):
        found = guard.check_many([BAD, culprit, BAD])
        assert [one.flags for one in found] == [("token_overlap",), (), ("token_overlap",)]
    assert [one.exc_info is not None for one in caplog.records] == [True]


def test_what_cannot_score_here_is_said_when_the_guard_is_made(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard(FILE)
    (said,) = caplog.messages
    assert said.startswith("gone gives no score: no detector 'gone'")
    guard.check(BAD)
    assert len(caplog.messages) == 1


def test_prompts_put_in_place_after_the_guard_was_made_count_at_once() -> None:
    own = Workspace(files={"refusals/en.txt": "[declines]\nnope\n"})
    with using(own):
        revision = revision_of(WordOverlap())
    guard = Guard(release({"word_overlap": entry(0.5, params={}, revision=revision)}))
    with using(own):
        assert guard.check(BAD).flags == ("word_overlap",)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"thresholds": "thresholds.json"}, "thresholds is a text; give what `load` returns"),
        ({"detectors": 5}, "detectors cannot be 5"),
        ({"detectors": [["a"]]}, "detectors cannot be"),
        ({"on_missing": "flag"}, "on_missing cannot be 'flag'; it is one of accept, review, reject"),
        ({"alerts": "https://host/"}, "alerts is a text; give Alerts"),
    ],
)
def test_settings_that_cannot_be(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Guard(**{"thresholds": FILE} | setting)


def test_what_flags_is_offered_to_the_alerts() -> None:
    with serving(lambda _: (200, {}, b"ok")) as server:
        alerts = Alerts(server.url, group_seconds=3600)
        guard = Guard(FILE, alerts=alerts)
        began = time.monotonic()
        for _ in range(3):
            guard.check_many([GOOD, BAD])
        assert server.asked == []
        assert alerts.flush(10)
        assert time.monotonic() - began < 60
        assert (alerts.counters.sent, len(server.asked)) == (3, 1)
        alerts.close()

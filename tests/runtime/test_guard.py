"""One call from an answer to a verdict, whatever goes wrong on the way."""

from __future__ import annotations

import logging
import time

import pytest

from calibrate.detectors.word_overlap import WordOverlap
from calibrate.runtime import Alerts, Guard, decide
from calibrate.types import Source, Trace
from tests.runtime.serving import serving
from tests.thresholds.make import entry, release

FILE = release({
    "token_overlap": entry(0.5, tier="page", params={}),
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
    assert Guard(FILE).check(Trace("", "")).verdict == "ACCEPT"

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(WordOverlap, "score", broken)
    assert Guard(FILE).check(BAD).flags == ("token_overlap",)  # one detector less
    monkeypatch.setattr("calibrate.run.score_batch", broken)
    with caplog.at_level(logging.ERROR, "touchstone"):
        assert Guard(FILE).check_many([BAD, GOOD]) == [decide(FILE, {})] * 2
    assert "scoring failed" in caplog.text


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

"""Scores that were computed elsewhere reach a decision: passed to `Guard`, or with the spans of an answer."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest

from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.record import SpanEvent, SpanRecord
from calibrate.runtime import Guard, Scorer, decide
from calibrate.types import Source, Trace
from tests.runtime.otel_making import FALSE, PASSAGE, Program, chat, scores
from tests.thresholds.make import entry, release

WORDS = entry(0.5, tier="page", params={}, version="1")
EXTERNAL = entry(0.5, tier="signal", params={}, revision="3", extra={"x-external": True})
FILE = release({"ragas": EXTERNAL, "word_overlap": WORDS})
TRACE = Trace("t", FALSE, question="When?", sources=(Source("1", PASSAGE),))
EVALUATION = "gen_ai.evaluation.result"


def test_a_guard_decides_by_what_it_is_given_and_computes_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "touchstone"):
        guard = Guard(FILE)
        decision = guard.check(TRACE, scores={"ragas": 0.4, "other": 1.0})
    assert caplog.messages == []  # a value was given: there is nothing to warn of
    own = Scorer(FILE).score([TRACE])[0].numbers["word_overlap"]
    assert decision == decide(FILE, {"ragas": 0.4, "word_overlap": own, "other": 1.0})
    assert (decision.flags, decision.unknown) == (("ragas", "word_overlap"), ("other",))
    # A value for a detector that could run here is taken for its own.
    assert guard.check(TRACE, scores={"ragas": 0.9, "word_overlap": 0.9}).flags == ()
    many = guard.check_many([TRACE, TRACE, TRACE], scores=[{"ragas": 0.1}, None, {"ragas": 0.9}])
    assert [each.flags for each in many] == [("ragas", "word_overlap"), ("word_overlap",), ("word_overlap",)]


def test_without_a_value_an_external_detector_is_missing_and_the_log_says_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    guard = Guard(FILE)
    with caplog.at_level(logging.WARNING, "touchstone"):
        decisions = [guard.check(TRACE), guard.check(TRACE, scores={}), guard.check(TRACE, scores={"ragas": None})]
    assert [each.missing for each in decisions] == [("ragas",)] * 3
    (message,) = caplog.messages
    assert "ragas" in message
    assert "guard.check(trace, scores={name: value})" in message
    alone = Guard(release({"ragas": EXTERNAL})).check(TRACE)
    assert (alone.verdict, alone.unscored) == ("REVIEW", True)
    assert alone.reasons == ("nothing was scored: its score is computed elsewhere, and none was given (ragas)",)


@pytest.mark.parametrize("value", ["0.4", True, [], {}, object(), math.nan, math.inf, 10**400])
def test_what_is_no_number_is_missing_and_nothing_raises(value: Any) -> None:
    guard = Guard(FILE)
    assert guard.check(TRACE, scores={"ragas": value}).missing == ("ragas",)
    assert guard.check(TRACE, scores=value).flags == ("word_overlap",)
    assert len(guard.check_many([TRACE, TRACE], scores=[{"ragas": 0.1}])) == 2


def test_scores_come_with_the_span_of_an_answer() -> None:
    program = Program(FILE)
    program.span(**chat(FALSE), **{"touchstone.score.ragas": 0.25})
    assert scores(program.result())["ragas"] == 0.25
    program = Program(FILE)
    with program.tracer.start_as_current_span("chat", attributes=chat(FALSE)) as span:
        said = {"gen_ai.evaluation.name": "ragas", "gen_ai.evaluation.score.value": 0.125}
        span.add_event(EVALUATION, said)
        span.add_event(EVALUATION, {**said, "gen_ai.evaluation.score.value": 0.75})  # the first counts
        span.add_event(EVALUATION, {**said, "gen_ai.evaluation.name": "word_overlap"})  # no external one
    assert scores(program.result()) == {"ragas": 0.125}


def test_an_imported_span_brings_its_scores_along() -> None:
    said = {"gen_ai.evaluation.name": "ragas", "gen_ai.evaluation.score.value": 0.5,
            "gen_ai.evaluation.explanation": "1 of 2"}  # fmt: skip
    ours = {**said, "touchstone.thresholds.version": 3}
    label = {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "rude"}
    span = SpanRecord(
        trace_id="a" * 32, span_id="b" * 16, name="chat",
        attributes=chat(FALSE) | {"touchstone.score.judge": 1, "touchstone.score.bad": "x"},
        events=tuple(SpanEvent(EVALUATION, event) for event in (said, ours, label)),
    )  # fmt: skip
    [answer] = answers_of([span])
    assert row_of(answer, 1).fields["scores"] == [
        {"name": "ragas", "value": 0.5, "reason": "1 of 2"},
        {"name": "tone", "value": "rude", "reason": None},  # the check of the record leaves it out, and says so
        {"name": "judge", "value": 1.0, "reason": None},
    ]

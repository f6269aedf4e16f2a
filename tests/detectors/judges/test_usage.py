"""Order, usage, estimates."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from calibrate import registry
from calibrate.backends.chat import chat
from calibrate.engines.run import score_stream
from calibrate.types import Usage
from calibrate.workspace import Workspace, using
from tests.detectors import scripted
from tests.detectors.judges.judging import JUDGES, ONE, Start, score, verdict
from tests.detectors.scripted import Said, last


@pytest.mark.parametrize("name", JUDGES)
def test_a_score_does_not_wait_for_later_traces(start: Start, name: str) -> None:
    """The last trace is not answered before the first score is out, through the runner too."""
    out = threading.Event()

    def script(body: dict[str, Any]) -> Said | str:
        if "ZULU" in last(body) and not out.wait(10):
            return Said("the first score waited for the last trace", status=400)
        return scripted.sensible(body)

    start(script)
    words = ("ALFA", "BRAVO", "", "ZULU")
    traces = [replace(ONE, id=word or "none", answer=f"{word} is covered." if word else "") for word in words]
    scores = score_stream(registry.make(name), traces)
    assert next(scores).status == "scored"
    out.set()
    assert [(one.status, one.reason) for one in scores] == [
        ("scored", None), ("abstained", "empty answer"), ("scored", None)]  # fmt: skip


def test_a_stopped_run_asks_no_more(start: Start) -> None:
    endpoint = start(scripted.sensible)
    traces = [replace(ONE, id=str(i), answer=f"Part {i} lasts.") for i in range(2_000)]
    scores = score_stream(registry.make("judge_yes_no"), traces)
    next(scores)
    scores.close()
    assert len(endpoint.asked) < 200


@pytest.mark.parametrize("name", JUDGES)
def test_what_was_asked_is_counted_and_was_foretold(start: Start, name: str) -> None:
    endpoint = start(scripted.sensible)
    one = replace(ONE, answer="The first lasts. The second does not.")
    detector = registry.make(name)
    foretold = detector.requests(one)  # type: ignore[attr-defined]
    assert endpoint.asked == []
    with using(Workspace(files={"prices.csv": "model,prompt,completion,as_of\nscripted,10,100,2026-01-01\n"})):
        (found,) = detector.score([one])
        estimate = chat().estimate(foretold)
    n = len(endpoint.asked)
    assert n == len(foretold) == estimate.requests
    cost = n * (100 * 10 + 7 * 100) / 1e6  # the endpoint counts 100 and 7 tokens a request
    assert found.usage == Usage(n, 0, 100 * n, 7 * n, pytest.approx(cost))  # type: ignore[arg-type]
    sent = sorted(json.dumps([[m["role"], m["content"]] for m in body["messages"]]) for body in endpoint.asked)
    assert sent == sorted(json.dumps([list(pair) for pair in request.messages]) for request in foretold)


def test_what_abstains_asks_and_costs_nothing(start: Start) -> None:
    endpoint = start("YES")
    for name in JUDGES:
        detector = registry.make(name)
        for one in (
            replace(ONE, answer="😀"),
            replace(ONE, answer=" "),
            replace(ONE, sources=(), context=" ", alternatives=()),
        ):
            assert detector.requests(one) == []  # type: ignore[attr-defined]
            (found,) = detector.score([one])
            assert (found.status, found.usage) == ("abstained", None)
    assert endpoint.asked == []


@pytest.mark.parametrize("answer", ["保修期为二十四个月。", "الضمان لمدة سنتين.", "האחריות נמשכת שנתיים."])
def test_other_scripts_reach_the_judge_whole(start: Start, answer: str) -> None:
    endpoint = start(verdict("supported"))
    found = score("judge_verdict", replace(ONE, answer=answer))
    assert found.value == 0
    assert (found.evidence[0].start, found.evidence[0].end) == (0, len(answer))
    assert f"1. {answer}" in last(endpoint.asked[0])

"""When an answer is ready, on a clock of the test's own."""

from __future__ import annotations

import pytest

from calibrate.ingest.spans.answers import Answer
from calibrate.ingest.spans.gather import Gather
from calibrate.ingest.spans.reader import Reader
from tests.ingest.spans.making import chat, retrieval, span

READER = Reader()


class Clocked:
    """A gather, and spans of numbered traces given to it at a time."""

    def __init__(self, most: int = 100) -> None:
        self.gather = Gather(seconds=10, most=most)

    def end(self, trace: int, attributes: dict[str, object], at: float = 0.0, root: bool = False) -> list[str]:
        ended = span(attributes, trace_id=f"{trace:032x}", parent=None if root else "00f067aa0ba902b7")
        return texts(self.gather.add(ended, READER.read(ended), answer=READER.holds(ended) == "answer", now=at))


def texts(answers: list[Answer]) -> list[str]:
    return [f"{answer.trace.answer} / {' '.join(s.text for s in answer.trace.sources)}" for answer in answers]


def test_an_answer_waits_for_its_root() -> None:
    clocked = Clocked()
    assert clocked.end(1, retrieval("one")) == []
    assert clocked.end(1, chat("said")) == []
    assert clocked.gather.answers == 1
    assert clocked.end(1, {}, root=True) == ["said / one"]
    assert clocked.gather.answers == 0
    assert clocked.gather.wait(now=0.0) is None


def test_traces_do_not_mix() -> None:
    clocked = Clocked()
    for trace in (1, 2):
        clocked.end(trace, retrieval(f"source {trace}"))
    for trace in (2, 1):
        clocked.end(trace, chat(f"answer {trace}"))
    assert clocked.end(1, {}, root=True) == ["answer 1 / source 1"]
    assert clocked.end(2, {}, root=True) == ["answer 2 / source 2"]


def test_a_root_that_never_ends_is_waited_for_so_long_after_the_last_span() -> None:
    clocked = Clocked()
    clocked.end(1, retrieval("one"), at=0.0)
    clocked.end(1, chat("slow"), at=8.0)
    assert clocked.gather.wait(now=12.0) == pytest.approx(6.0)
    assert clocked.gather.overdue(now=17.9) == []
    assert texts(clocked.gather.overdue(now=18.0)) == ["slow / one"]


def test_an_answer_that_streams_on_after_its_root_still_has_its_sources() -> None:
    clocked = Clocked()
    clocked.end(1, retrieval("one"))
    assert clocked.end(1, {}, root=True) == []
    assert clocked.end(1, chat("streamed")) == ["streamed / one"]


def test_what_is_held_is_bounded_and_the_longest_silent_goes_first() -> None:
    clocked = Clocked(most=4)
    clocked.end(1, retrieval("one"))
    clocked.end(2, chat("two"))
    clocked.end(1, chat("first"))
    clocked.end(3, chat("three"))
    assert clocked.end(4, chat("four")) == ["two / "]
    assert clocked.end(4, retrieval("x")) == ["first / one"]
    for trace in range(100, 1100):
        clocked.end(trace, retrieval("x"))
    assert clocked.gather._span_count <= 4


def test_the_roots_of_a_program_that_asks_no_model_are_not_kept() -> None:
    clocked = Clocked()
    for trace in range(50):
        assert clocked.end(trace, {"http.request.method": "GET"}, root=True) == []
    assert clocked.gather.wait(now=0.0) is None


def test_a_flush_releases_everything() -> None:
    clocked = Clocked()
    clocked.end(1, chat("a"))
    clocked.end(2, chat("b"))
    clocked.end(3, retrieval("x"))
    assert texts(clocked.gather.all()) == ["a / ", "b / "]
    assert clocked.gather.all() == []
    assert clocked.gather.answers == 0

"""A draw of the Draw page: how far it is, and that a stopped one leaves nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import db.tables.numbers
from calibrate.errors import BadInput
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.sampling import sample
from db import Store, open_store
from pages.components.draw_job import DrawJob
from tests.workflow.making import NOW, fill
from tests.workflow.making import draw as drawn

MANY = 400


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(db.tables.numbers, "CHUNK", 50)
    opened = open_store(f"sqlite:///{tmp_path}/store.db")
    fill(opened, *drawn(MANY))
    yield opened
    opened.close()


def octave(store: Store, on_progress: Callable[[int, int], None]) -> Sample:
    return sample.draw(
        store, "w47", size=40, design="octave", where=TraceFilter(), seed=1, now=NOW, on_progress=on_progress
    )


def test_a_draw_tells_how_many_traces_are_ranked(store: Store) -> None:
    seen: list[tuple[int, int]] = []
    octave(store, lambda done, total: seen.append((done, total)))
    assert seen == [*((done, MANY) for done in range(50, MANY + 1, 50)), (MANY, MANY)]


@pytest.mark.parametrize("at", [50, MANY])
def test_a_stopped_draw_draws_nothing_and_can_be_drawn_again(store: Store, at: int) -> None:
    """Stopped while traces are ranked, and at the last moment before the sample is kept."""
    there, go = threading.Event(), threading.Event()

    def work(on_progress: Callable[[int, int], None]) -> Sample:
        def wait(done: int, total: int) -> None:
            if done == at:
                there.set()
                go.wait(30)
            on_progress(done, total)

        return octave(store, wait)

    job = DrawJob(work)
    assert there.wait(30)
    assert job.running
    job.stop()
    go.set()
    job.wait(30)
    assert (job.running, job.stopped, job.sample(), store.samples.list()) == (False, True, None, [])
    again = DrawJob(lambda on_progress: octave(store, on_progress))
    again.wait(30)
    assert again.sample() == store.samples.get("w47")
    assert not again.stopped


def test_what_went_wrong_in_a_draw_is_raised_where_it_is_asked_for(store: Store) -> None:
    octave(store, lambda done, total: None)
    job = DrawJob(lambda on_progress: octave(store, on_progress))
    job.wait(30)
    with pytest.raises(BadInput, match="w47"):
        job.sample()
    assert not job.stopped


def test_the_bar_says_how_far_it_is(store: Store) -> None:
    texts: list[str] = []

    def work(on_progress: Callable[[int, int], None]) -> Sample:
        def look(done: int, total: int) -> None:
            on_progress(done, total)
            began.wait(30)
            texts.append(job.text())

        return octave(store, look)

    began = threading.Event()
    job = DrawJob(work)
    began.set()
    job.wait(30)
    assert texts[0].startswith("Ranking 50 of 400 traces")
    assert texts[-1] == "Drawing …"

"""How many traces fit into the time that people have."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.errors import BadInput
from calibrate.report.sentences.labelling import drawing
from calibrate.types import Label, Record, Trace
from calibrate.workflow.sampling.pace import ASSUMED, Pace, pace_of_each, team_pace, traces_for
from db import Store, open_store
from tests.workflow.making import NOW


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    traces = [Trace(f"t{n}", "an answer") for n in range(40)]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    return store


def say(store: Store, who: str, seconds: float | None, n: int, adjudicates: bool = False) -> None:
    for each in range(n):
        label = Label(f"t{each}", who, "clean", seconds=seconds, adjudicates=adjudicates)
        store.labels.add(store.traces.find(f"t{each}") or 0, label, sample_id=None, now=NOW)


def test_the_pace_is_assumed_and_said_to_be_until_ten_labels_are_timed(store: Store) -> None:
    say(store, "ann", None, 20)
    say(store, "ann", 12.0, 9)
    say(store, "lead", 99.0, 20, adjudicates=True)
    assert team_pace(store) == Pace(ASSUMED, 0, 0)
    assert "assumed" in drawing.pace(team_pace(store))
    say(store, "bob", 32.0, 1)
    assert team_pace(store) == Pace(14.0, 10, 2)  # (9 * 12 + 32) / 10
    assert drawing.pace(team_pace(store)) == "14 s a label, the pace of the last 10 labels here, by 2 people"


def test_a_pause_is_not_labelling_and_everybody_has_a_pace_of_their_own(store: Store) -> None:
    say(store, "ann", 10.0, 30)
    say(store, "bob", 86_400.0, 10)
    assert pace_of_each(store) == {"ann": Pace(10.0, 30, 1), "bob": Pace(600.0, 10, 1)}


def test_a_split_brings_more_traces_and_an_overlap_takes_some_back() -> None:
    pace = Pace(30.0)
    assert traces_for(pace, 60) == traces_for(pace, 60, people=3) == 120
    assert traces_for(pace, 60, people=3, overlap=0.0) == 360
    for overlap in (0.0, 0.2, 1.0):
        n = traces_for(pace, 60, people=4, overlap=overlap)
        assert n * (1 + overlap) * pace.seconds <= 4 * 3600 < (n + 1) * (1 + overlap) * pace.seconds
    assert traces_for(pace, 60, people=1, overlap=0.5) == 120  # nobody else is there to label a trace again
    for minutes, people in ((0, 1), (-5, 1), (10_000, 1), (60, 0)):
        with pytest.raises(BadInput, match=r"minutes|people"):
            traces_for(pace, minutes, people=people)

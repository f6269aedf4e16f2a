"""A labeller's visit: what is shown, what a press does, and what a second press does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.types import Label, TraceFilter
from calibrate.workflow.sampling import sample as sampling
from db import Store, open_store
from db.labels import Place
from pages.components.labelling import desk as labelling_desk
from pages.components.labelling.desk import Desk, Turn
from pages.components.labels_line import sample_with_gap
from tests.workflow.making import NOW, fill


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    fill(store, [None] * 3, [0.1, 0.2, 0.3])
    sampling.draw(store, "w47", size=3, design="random", by=None, where=TraceFilter(), seed=1, now=NOW)
    return store


@pytest.fixture
def desk(store: Store) -> Desk:
    sample = store.samples.get("w47")
    assert sample is not None
    return Desk(sample, "ann")


@pytest.mark.parametrize(
    ("labelled", "seconds", "text"),
    [
        (0, None, "0 / 300"),
        (182, 14.0, "182 / 300 · 14 s each · about 28 min left"),
        (299, 0.2, "299 / 300 · 1 s each · about a minute left"),
        (290, 8.95, "290 / 300 · 9 s each · about a minute left"),
        (290, 9.0, "290 / 300 · 9 s each · about 2 min left"),
        (0, 20.0, "0 / 300 · 20 s each · about 2 h left"),
        (300, 14.0, "300 / 300"),
    ],
)
def test_progress_counts_the_labels_that_are_left(labelled: int, seconds: float | None, text: str) -> None:
    assert labelling_desk.progress(Place(0, labelled, 0, 300, seconds)) == text


def test_an_answer_is_saved_once_and_the_next_trace_comes(store: Store, desk: Desk) -> None:
    first = labelling_desk.turn(store, desk)
    assert labelling_desk.turn(store, desk).number == first.number, "a rerun is the same turn"
    labelling_desk.answer(store, desk, first.number, "hallucinated", kinds=("fabrication",), note="made up")
    labelling_desk.answer(store, desk, first.number, "clean")
    second = labelling_desk.turn(store, desk)
    assert second.pk != first.pk
    assert first.pk is not None
    (label,) = store.labels.of_trace(first.pk)
    assert (label.verdict, label.kinds, label.note, label.labeller) == (
        "hallucinated", ("fabrication",), "made up", "ann",
    )  # fmt: skip
    assert labelling_desk.tally(store, desk) == {"hallucinated": 1}


def test_kinds_are_of_hallucinated_answers_alone(store: Store, desk: Desk) -> None:
    turn = labelling_desk.turn(store, desk)
    labelling_desk.answer(store, desk, turn.number, "clean", kinds=("fabrication",))
    assert turn.pk is not None
    assert store.labels.of_trace(turn.pk)[0].kinds == ()


def test_back_leads_to_the_trace_before_and_a_new_verdict_replaces_it(store: Store, desk: Desk) -> None:
    first = labelling_desk.turn(store, desk)
    assert not first.can_go_back
    labelling_desk.answer(store, desk, first.number, "clean")
    labelling_desk.back(store, desk, labelling_desk.turn(store, desk).number)
    again = labelling_desk.turn(store, desk)
    assert again.pk == first.pk
    assert again.before is not None
    assert again.before.verdict == "clean"
    labelling_desk.answer(store, desk, again.number, "unsure")
    assert labelling_desk.tally(store, desk) == {"unsure": 1}
    assert desk.back_at is None


def test_back_reaches_the_labels_of_an_earlier_visit(store: Store, desk: Desk) -> None:
    passed = []
    for _ in range(2):
        turn = labelling_desk.turn(store, desk)
        labelling_desk.answer(store, desk, turn.number, "clean")
        passed.append(turn.pk)
    visit = Desk(desk.sample, "ann")
    for expected in reversed(passed):
        labelling_desk.back(store, visit, labelling_desk.turn(store, visit).number)
        assert labelling_desk.turn(store, visit).pk == expected
    assert not labelling_desk.turn(store, visit).can_go_back


def test_a_skipped_trace_comes_again_at_the_end(store: Store, desk: Desk) -> None:
    first = labelling_desk.turn(store, desk)
    labelling_desk.skip(store, desk, first.number)
    seen = []
    for _ in range(3):
        turn = labelling_desk.turn(store, desk)
        seen.append(turn.pk)
        labelling_desk.answer(store, desk, turn.number, "clean")
    assert seen[-1] == first.pk
    assert labelling_desk.turn(store, desk).pk is None


def test_skipped_traces_that_hold_back_labels_are_named_and_come_first(store: Store, desk: Desk) -> None:
    first, second, third = (pk for pk, _ in store.samples.keys(desk.sample.id))
    for _ in range(2):
        labelling_desk.skip(store, desk, labelling_desk.turn(store, desk).number)
    labelling_desk.answer(store, desk, labelling_desk.turn(store, desk).number, "clean")
    store.labels.add(first, Label("", "bob", "clean"), sample_id=None, now=NOW)
    turn = labelling_desk.turn(store, desk)  # ann skipped the first trace before; the second holds back the third
    assert turn.pk == second
    assert " · 1 skipped trace holds back 1 label · " in labelling_desk.status(desk, turn)
    labelling_desk.answer(store, desk, turn.number, "unsure")
    turn = labelling_desk.turn(store, desk)
    assert (turn.pk, turn.gap) == (first, None)
    assert "once more" in labelling_desk.status(desk, turn)
    assert store.labels.of_trace(third)[0].labeller == "ann"


def test_the_link_to_the_gap_leads_to_the_trace_that_holds_back_labels(store: Store, desk: Desk) -> None:
    """Nobody skipped: the second trace was passed over by a file."""
    first, second, third = (pk for pk, _ in store.samples.keys(desk.sample.id))
    assert sample_with_gap(store, ("w47",)) is None
    for pk in (first, third):
        store.labels.add(pk, Label("", "file", "clean"), sample_id=None, now=NOW)
    assert sample_with_gap(store, ("w47",)) == "w47"
    assert sample_with_gap(store, ()) == "w47"
    assert labelling_desk.turn(store, desk).pk == first
    by_link = Desk(desk.sample, "ann", gap_first=True)
    turn = labelling_desk.turn(store, by_link)
    assert turn.pk == second
    assert "1 skipped trace holds back 1 label" in labelling_desk.status(by_link, turn)
    labelling_desk.answer(store, by_link, turn.number, "clean")
    turn = labelling_desk.turn(store, by_link)
    assert (turn.pk, turn.gap) == (first, None), "then the queue as ever"


def line(place: Place, *, before: Label | None = None, back_at: int | None = None, message: str = "") -> str:
    sample = sampling.Sample(1, "w47", "random", None, 3, 1, 3, 0, TraceFilter(), {}, NOW)
    turn = Turn(1, 7, None, before, place, True)
    return labelling_desk.status(Desk(sample, "ann", back_at=back_at, message=message), turn)


def test_the_status_says_where_the_labeller_stands() -> None:
    assert line(Place(0, 1, 0, 3, None)) == "**w47** · 1 / 3"
    assert line(Place(0, 1, 1, 3, None)) == "**w47** · 1 / 3 · 1 skipped"
    assert line(Place(0, 2, 1, 3, None)) == "**w47** · 2 / 3 · the 1 you skipped, once more"
    assert line(Place(0, 1, 1, 3, None), back_at=0) == "**w47** · 1 / 3 · back: you skipped it"
    said = Label("t0", "ann", "clean")
    assert line(Place(0, 1, 0, 3, None), before=said, back_at=0) == "**w47** · 1 / 3 · back: you said clean"
    assert line(Place(0, 1, 0, 3, None), message="clean, saved ✓") == "**w47** · 1 / 3 · :gray[clean, saved ✓]"

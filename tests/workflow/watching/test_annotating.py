"""Verdicts reach another system once: through kills, times when it is down, and answers that it does not have."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from calibrate.errors import TouchstoneError
from calibrate.ingest.systems.base import Note, NoteScore
from calibrate.types import Record, Trace, TraceFilter
from calibrate.workflow.watching.annotating import FIRST_PAUSE, PATIENCE, REFUSALS, Annotating, compose
from calibrate.workflow.watching.watch import Watcher
from db import Store
from db.exchange.annotations import Tally
from tests.workflow.making import DETECTOR, NOW
from tests.workflow.watching.test_watch import FEW, publish

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
TRACE = "a88ed407277f80ff39048bb0ffbf3b46"


class System:
    """Takes notes, but is down for some calls, and lacks some answers."""

    def __init__(self, *, down: int = 0, lacks: Sequence[str] = ()) -> None:
        self.down, self.lacks = down, lacks
        self.calls: list[list[str]] = []
        self.notes: dict[str, Note] = {}

    def annotate(self, notes: Sequence[Note]) -> Mapping[str, str]:
        self.calls.append([note.span_id for note in notes])
        if len(self.calls) <= self.down:
            raise TouchstoneError("it answered 503")
        self.notes.update({note.key: note for note in notes if note.span_id not in self.lacks})
        return {note.key: "no such span" for note in notes if note.span_id in self.lacks}


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def __call__(self) -> datetime:
        return self.at


def span(n: int) -> str:
    return f"{n:016x}"


def watched(store: Store, count: int = 3) -> None:
    """A release, answers of another system, and the decisions on them."""
    publish(store, 0.5)
    traces = [
        Trace(f"{TRACE}-{span(n)}", f"bananas {n}", context="the battery lasts two years", timestamp=NOW)
        for n in range(count)
    ]
    store.traces.add([Record(1, trace) for trace in traces], labels_as=None, now=NOW)
    Watcher(store, where=TraceFilter, now=lambda: NOW, targets=["phoenix"]).look()


def write(store: Store, system: System, clock: Clock) -> Annotating:
    """One run of `watch --once`: it writes what is due, and ends."""
    annotating = Annotating(store, "phoenix", system, now=clock)
    annotating.close(30)
    return annotating


def test_only_answers_of_other_systems_are_written_each_once(store: Store) -> None:
    watched(store)
    assert store.annotations.tally() == {"phoenix": Tally(0, 3, 0)}  # and not the FEW that have names of their own
    assert store.decisions.newest_trace() == FEW + 3
    system, clock = System(), Clock()
    assert write(store, system, clock).written == 3
    assert write(store, system, clock).written == 0
    assert [sorted(call) for call in system.calls] == [[span(0), span(1), span(2)]]
    assert store.annotations.tally() == {"phoenix": Tally(3, 0, 0)}
    note = system.notes[f"{TRACE}-{span(1)}/v1"]
    (decision,) = store.decisions.of(FEW + 2)
    assert (note.trace_id, note.span_id, note.version, note.verdict) == (TRACE, span(1), 1, decision.verdict)
    assert note.scores == {DETECTOR: NoteScore(decision.scores[DETECTOR], 0.5, True, decision.reasons[0])}


def test_an_answer_that_was_pulled_goes_back_to_its_system_alone(store: Store) -> None:
    publish(store, 0.5)
    names = [f"{TRACE}-{span(n)}" for n in range(4)]
    traces = [Trace(name, "bananas", context="the battery lasts two years", timestamp=NOW) for name in names]
    store.traces.add([Record(1, trace) for trace in traces], labels_as=None, now=NOW)
    store.origins.note("one", "phoenix", names[:1])
    store.origins.note("two", "mlflow", names[1:2])
    store.origins.note("chats", "sql", names[2:3])  # a table cannot be annotated, and its ids are another system's
    Watcher(store, where=TraceFilter, now=lambda: NOW, targets=["phoenix", "mlflow", "otel"]).look()
    queued = {
        target: {unsent.trace_id for unsent in store.annotations.claim(target, 9, now=NOW, until=NOW)}
        for target in store.annotations.tally()
    }
    assert queued == {
        "phoenix": {names[0], *names[2:]},
        "mlflow": {names[1], *names[2:]},
        "otel": set(names),
    }


def test_a_second_look_queues_nothing_twice(store: Store) -> None:
    watched(store)
    Watcher(store, where=TraceFilter, now=lambda: NOW, targets=["phoenix"]).look()
    assert store.annotations.tally() == {"phoenix": Tally(0, 3, 0)}


def test_a_kill_after_the_writing_writes_the_same_key_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    watched(store, 1)
    system, clock = System(), Clock()

    def dies(*_: object, **__: object) -> None:
        raise TouchstoneError("killed here")

    monkeypatch.setattr(store.annotations, "mark_told", dies)
    write(store, system, clock)
    monkeypatch.undo()
    assert write(store, system, clock).written == 0  # it is leased to the one that died
    clock.at += timedelta(hours=1)
    assert write(store, system, clock).written == 1
    assert (len(system.calls), len(system.notes)) == (2, 1)


def test_a_system_that_is_down_keeps_them_with_pauses_that_double(store: Store) -> None:
    watched(store, 2)
    system, clock, waits = System(down=4), Clock(), []
    for _ in range(5):
        before = clock.at
        problem = write(store, system, clock).problem
        due = store.annotations.due("phoenix")
        if due is None:
            break
        assert problem == "it answered 503"
        waits.append((due - before).total_seconds())
        assert write(store, system, clock).written == 0  # not before it is due
        clock.at = due
    assert waits == [FIRST_PAUSE * factor for factor in (1, 2, 4, 8)]
    assert store.annotations.tally() == {"phoenix": Tally(2, 0, 0)}


def test_answers_that_a_system_never_has_are_given_up_and_counted(store: Store) -> None:
    watched(store)
    system, clock = System(lacks=[span(1)]), Clock()
    for attempt in range(1, REFUSALS + 1):
        given_up = write(store, system, clock).given_up
        assert given_up == (attempt == REFUSALS)
        clock.at += timedelta(hours=2)
    assert store.annotations.tally() == {"phoenix": Tally(2, 0, 1)}
    assert len(system.calls) == REFUSALS
    write(store, system, clock)
    assert len(system.calls) == REFUSALS


def test_a_system_that_is_down_for_a_week_is_given_up(store: Store) -> None:
    watched(store, 1)
    clock = Clock()
    write(store, System(down=9), clock)
    clock.at += PATIENCE + timedelta(hours=2)
    assert write(store, System(down=9), clock).given_up == 1


def test_new_decisions_wake_the_writer(store: Store) -> None:
    publish(store, 0.5)
    system = System()
    annotating = Annotating(store, "phoenix", system, now=lambda: NOW)
    trace = Trace(f"{TRACE}-{span(7)}", "bananas", context="the battery lasts two years", timestamp=NOW)
    store.traces.add([Record(1, trace)], labels_as=None, now=NOW)
    Watcher(store, where=TraceFilter, now=lambda: NOW, targets=["phoenix"], annotated=annotating.wake).look()
    end = time.monotonic() + 20
    while not system.notes and time.monotonic() < end:
        time.sleep(0.05)
    annotating.close(10)
    assert len(system.notes) == 1


def test_a_purged_answer_is_written_nowhere(store: Store) -> None:
    from calibrate.types import Chosen

    watched(store, 2)
    store.purges.remove(Chosen(trace_ids=(f"{TRACE}-{span(0)}",)), by="ann", now=NOW)
    system = System()
    write(store, system, Clock())
    assert system.calls == [[span(1)]]


def test_a_trace_with_a_name_of_its_own_has_no_note(store: Store) -> None:
    watched(store, 1)
    (decision,) = store.decisions.of(FEW + 1)
    assert compose("t1", decision, None) is None
    note = compose(f"{TRACE}-{span(0)}", decision, None)
    assert note is not None
    assert note.scores[DETECTOR].threshold is None

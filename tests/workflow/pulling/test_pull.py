"""What a pull promises: every answer comes once, whatever stops it, and it goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.labels.base import LeftOut, Parsed
from calibrate.ingest.systems.base import Page
from calibrate.ingest.systems.slices import Slices
from calibrate.types import Label, Record, Trace, TraceFilter
from calibrate.workflow.pulling.pull import Pulled, pull
from db import Store, open_store

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def clock() -> datetime:
    return NOW


@dataclass
class Numbers:
    """A source of numbered answers, five on a page, that breaks where it is told to."""

    count: int
    breaks_before: int | None = None
    labels: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    bad: frozenset[int] = frozenset()
    name: str = "numbers"
    system: str = "phoenix"
    settings: Mapping[str, Any] = field(default_factory=lambda: {"project": "shop"})
    asked: list[tuple[datetime | None, Mapping[str, Any] | None]] = field(default_factory=list)

    def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
        self.asked.append((since, cursor))
        begin = 0 if cursor is None else cursor["next"]
        for start in range(begin, self.count, 5):
            if self.breaks_before is not None and start >= self.breaks_before:
                raise ConnectionError("gone")
            numbers = range(start, min(start + 5, self.count))
            rows = [Rejected(n, "no answer") if n in self.bad else answer(n) for n in numbers]
            labels = tuple(label for n in numbers for label in self.labels.get(n, ()))
            yield Page(rows, labels=labels, cursor={"next": start + 5}, share=min(1.0, (start + 5) / self.count))


def answer(n: int, text: str = "") -> Row:
    return Row(n, {"trace_id": f"n{n}", "answer": text or f"answer {n}", "timestamp": NOW.isoformat()})


def said(n: int, verdict: Any, by: str = "ann") -> Parsed:
    return Parsed(n, Label(f"n{n}", by, verdict, created_at=NOW))


def ids(store: Store) -> list[str]:
    names = (trace_id for chunk in store.traces.ids(TraceFilter()) for trace_id in chunk)
    return sorted(names, key=lambda name: int(name[1:]))


def test_a_pull_that_breaks_goes_on_where_it_was(store: Store) -> None:
    source = Numbers(23, breaks_before=10)
    with pytest.raises(ConnectionError):
        pull(store, source, since=None, now=clock)
    stopped = store.pulls.get("numbers")
    assert stopped is not None
    assert (stopped.cursor, stopped.traces, stopped.finished) == ({"next": 10}, 10, False)
    source.breaks_before = None
    brought = pull(store, source, since=None, now=clock)
    assert source.asked == [(None, None), (None, {"next": 10})]
    assert (brought.report.imported, brought.report.duplicates, brought.pages) == (13, 0, 3)
    assert ids(store) == [f"n{n}" for n in range(23)]
    end = store.pulls.get("numbers")
    assert end is not None
    assert (end.traces, end.finished, end.settings) == (23, True, {"project": "shop"})
    verbs = [entry.verb for entry in store.audit.entries()]
    assert verbs.count("pull begun") == 2
    assert verbs.count("traces pulled") == 1


def test_a_kill_between_a_page_and_its_cursor_loses_and_doubles_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {n: (said(n, "clean"),) for n in range(12)}
    advance, calls = store.pulls.advance, []

    def dies_at_the_second(*args: Any, **kwargs: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        advance(*args, **kwargs)

    monkeypatch.setattr(store.pulls, "advance", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        pull(store, Numbers(12, labels=labels), since=None, now=clock)
    monkeypatch.undo()
    assert len(ids(store)) == 10  # the second page is in, its cursor is not
    brought = pull(store, Numbers(12, labels=labels), since=None, now=clock)
    assert (brought.report.imported, brought.report.duplicates) == (2, 5)
    assert (brought.labels, brought.labels_unchanged) == (2, 5)
    assert store.labels.count() == 12
    assert len(ids(store)) == 12


@pytest.mark.parametrize("limit", [1, 4, 5, 7])
def test_a_limit_ends_a_page_early_and_the_next_pull_has_the_rest(store: Store, limit: int) -> None:
    for wanted in range(limit, 12, limit):
        brought = pull(store, Numbers(12), since=None, limit=limit, now=clock)
        assert (len(ids(store)), brought.limited) == (wanted, True)
    brought = pull(store, Numbers(12), since=None, limit=limit + 12, now=clock)
    assert (len(ids(store)), brought.limited) == (12, False)


def test_a_restart_forgets_the_cursor_and_keeps_the_answers(store: Store) -> None:
    pull(store, Numbers(7), since=None, now=clock)
    source = Numbers(7)
    brought = pull(store, source, since=NOW, restart=True, now=clock)
    assert source.asked == [(NOW, None)]
    assert (brought.report.imported, brought.report.duplicates) == (0, 7)


def test_the_good_rows_come_in_and_the_others_are_named(store: Store) -> None:
    class Odd(Numbers):
        def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
            odd = Row(3, {"trace_id": "n9", "answer": ["no text"]})
            labels = (said(0, "hallucinated", "bob"), said(77, "clean"), LeftOut("annotations 'tone'"))
            rows = [answer(0), Rejected(1, "no answer"), answer(0, "another answer"), odd]
            yield Page(rows, labels=labels, cursor={}, left_out={"spans without an answer": 3})

    brought = pull(store, Odd(0), since=None, now=clock)
    assert (brought.report.imported, brought.report.rejected, brought.changed) == (1, 2, 1)
    assert [error.reason for error in brought.report.errors] == ["no answer", "n9: answer: expected text, found a list"]
    assert [error.reason for error in brought.label_errors] == ["no trace 'n77' in the store"]
    assert brought.left_out == {"annotations 'tone'": 1, "spans without an answer": 3}
    assert (brought.labels, brought.membership.outside) == (1, 1)
    stored = store.traces.get(1)
    assert stored is not None
    assert (stored.trace.answer, stored.gold) == ("answer 0", "hallucinated")


def test_secrets_in_answers_are_replaced_before_they_are_stored(store: Store) -> None:
    class Mail(Numbers):
        def fetch(self, since: datetime | None, cursor: Mapping[str, Any] | None) -> Iterator[Page]:
            yield Page([answer(0, "write to ann@example.org")], cursor={})

    brought = pull(store, Mail(0), since=None, redact="email", now=clock)
    stored = store.traces.get(1)
    assert stored is not None
    assert "ann@example.org" not in stored.trace.answer
    assert brought.report.redacted == {"e-mail": 1}


def test_late_remarks_are_asked_for_answers_of_the_window(store: Store) -> None:
    class Late(Numbers):
        def remarks(self, since: datetime | None, answers: Iterator[list[str]]) -> Iterator[Page]:
            for batch in answers:
                yield Page(labels=[Parsed(1, Label(name, "ann", "clean", created_at=NOW)) for name in batch])

    pull(store, Numbers(3), since=None, now=clock)
    old = Row(9, {"trace_id": "n9", "answer": "old", "timestamp": (NOW - timedelta(days=30)).isoformat()})
    pull(store, type("Old", (Numbers,), {"fetch": lambda self, since, cursor: iter([Page([old])])})(0, name="old"),
         since=None, now=clock)  # fmt: skip
    brought = pull(store, Late(3), since=NOW - timedelta(days=14), now=clock)
    assert brought.labels == 3
    assert {label.trace_id for label in store.labels.export()} == {"n0", "n1", "n2"}


def test_remarks_are_asked_for_on_answers_that_came_by_this_pull(store: Store) -> None:
    class Late(Numbers):
        def remarks(self, since: datetime | None, answers: Iterator[Sequence[str]]) -> Iterator[Page]:
            self.seen = [name for chunk in answers for name in chunk]
            yield from ()

    for name in ("n1", "n99"):  # both from a file; the system has the first of them too
        store.traces.add([Record(1, Trace(name, f"answer {name[1:]}", timestamp=NOW))], labels_as=None, now=NOW)
    other, source = Late(6, name="the other"), Late(3)
    for each in (other, source, other):
        pull(store, each, since=None, now=clock)
    assert (sorted(source.seen), sorted(other.seen)) == (["n0", "n1", "n2"], [f"n{n}" for n in range(6)])
    chunks = list(store.origins.ids("the other", "phoenix", TraceFilter(), chunk=4))
    assert [len(chunk) for chunk in chunks] == [4, 2]


def test_pages_are_told_of_as_they_are_stored(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    seen: list[tuple[int, float | None]] = []

    def on_page(pulled: Pulled) -> None:
        seen.append((pulled.report.imported, pulled.share))

    pull(store, Numbers(12), since=None, now=clock, on_page=on_page)
    assert seen == [(5, 5 / 12), (10, 10 / 12), (12, 1.0)]


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 60)), max_size=60),
    st.lists(st.integers(1, 2000), min_size=1, max_size=6),
    st.sets(st.integers(0, 60), max_size=10),
)
def test_slices_miss_nothing_that_comes_within_the_overlap(
    items: list[tuple[int, int]], pauses: list[int], kills: set[int]
) -> None:
    """Things begin at a minute and come to the system up to an hour later. Pulls come after pauses, and are killed."""
    start, overlap = NOW - timedelta(minutes=6000), timedelta(minutes=60)
    things = [(start + timedelta(minutes=begin), start + timedelta(minutes=begin + lag)) for begin, lag in items]
    cursor: dict[str, Any] | None = None
    taken: set[int] = set()
    at, step = start, 0
    for minutes in [*pauses, 10_000]:
        at += timedelta(minutes=minutes)
        last = minutes == 10_000
        slices = Slices(start, cursor, now=at, overlap=overlap)
        for begin, end in slices:
            step += 1
            in_slice = {n for n, (began, came) in enumerate(things) if begin <= began < end and came <= at}
            if len(in_slice) > 5 and slices.halve():
                continue
            taken |= in_slice
            slices.read(end, len(in_slice))
            cursor = slices.cursor
            assert 0 <= slices.share <= 1
            if step in kills and not last:
                break
    assert taken == set(range(len(things)))


def test_a_cursor_of_another_kind_names_the_remedy() -> None:
    with pytest.raises(BadInput, match="--restart"):
        Slices(NOW, {"next": 3}, now=NOW, overlap=timedelta(hours=1))

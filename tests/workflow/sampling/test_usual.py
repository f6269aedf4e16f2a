"""The sample for who wants to label at once: this week's, drawn once, of recent traffic where there is some."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from calibrate.errors import BadInput
from calibrate.types import Record, Trace
from calibrate.workflow.sampling.usual import draw_usual
from db import Store

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def fill(store: Store, ages: list[timedelta | None]) -> None:
    times = [None if age is None else NOW - age for age in ages]
    traces = [Trace(f"t{n}", f"Answer {n}.", timestamp=time) for n, time in enumerate(times)]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)


def test_recent_traces_are_drawn_once(store: Store) -> None:
    fill(store, [timedelta(days=n) for n in range(1, 41)])
    sample = draw_usual(store, now=NOW, size=10)
    assert (sample.name, sample.size, sample.pool, sample.design) == ("2026-W47", 10, 14, "random")
    assert draw_usual(store, now=NOW, size=10) == sample


@pytest.mark.parametrize("age", [None, timedelta(days=300)])
def test_of_all_traces_where_none_is_recent(store: Store, age: timedelta | None) -> None:
    fill(store, [age] * 5)
    assert draw_usual(store, now=NOW).size == 5


def test_an_empty_store_has_none(store: Store) -> None:
    with pytest.raises(BadInput):
        draw_usual(store, now=NOW)

"""Windows of the list join to the whole, in Python's own order of the same traces, whatever their size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from calibrate.types import Label, Record, Score, Trace, TraceFilter
from db import Store
from db.listing.lines import Line, Order, ScoreBand

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
# Two share each time, some have none; two share each score, some have none.
TIMES = [None if n % 7 == 0 else NOW - timedelta(minutes=n // 2) for n in range(60)]
VALUES = [None if n % 5 == 0 else (n // 2 * 11 % 29) / 29 for n in range(60)]


def fill(store: Store) -> ScoreBand:
    traces = [Trace(f"t{n}", f"Answer {n}.", model=f"m{n % 2}", timestamp=TIMES[n]) for n in range(60)]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    config = store.scores.config("rouge_l", "1", {}, "", now=NOW)
    other = store.scores.config("bleu", "1", {}, "", now=NOW)

    def score(n: int) -> Score:
        value = VALUES[n]
        return Score(f"t{n}", value) if value is not None else Score(f"t{n}", None, "no", "abstained")

    scores = [(trace.content_hash(), score(n)) for n, trace in enumerate(traces) if n % 10]
    store.scores.save(config.id, scores, now=NOW)
    store.scores.save(other.id, [(trace.content_hash(), Score(trace.id, 9.0)) for trace in traces], now=NOW)
    store.labels.add(store.traces.find("t4") or 0, Label("t4", "ann", "clean"), sample_id=None, now=NOW)
    return ScoreBand(config.id)


def walk(store: Store, where: TraceFilter, band: ScoreBand | None, order: Order, size: int) -> list[Line]:
    lines: list[Line] = []
    window = store.lines.window(where, band=band, order=order, limit=size)
    while True:
        lines += window.lines
        if window.after is None:
            return lines
        assert len(window.lines) == size
        window = store.lines.window(where, band=band, order=order, limit=size, after=window.after)


def number(line: Line) -> int:
    return int(line.id[1:])


@pytest.mark.both_databases
@pytest.mark.parametrize("size", [1, 7, 60])
def test_by_time(store: Store, size: int) -> None:
    band = fill(store)
    dated = sorted((n for n in range(60) if TIMES[n]), key=lambda n: (TIMES[n], n), reverse=True)
    undated = sorted((n for n in range(60) if TIMES[n] is None), reverse=True)
    lines = walk(store, TraceFilter(), band, "newest", size)
    assert [number(line) for line in lines] == dated + undated
    assert all(line.value == VALUES[number(line)] for line in lines)
    assert {line.id: line.gold for line in lines}["t4"] == "clean"


@pytest.mark.both_databases
@pytest.mark.parametrize("size", [1, 7, 60])
def test_by_score(store: Store, size: int) -> None:
    band = fill(store)
    scored = sorted((n for n in range(60) if VALUES[n] is not None), key=lambda n: (VALUES[n], n))
    assert [number(line) for line in walk(store, TraceFilter(), band, "lowest", size)] == scored
    assert [number(line) for line in walk(store, TraceFilter(), band, "highest", size)] == scored[::-1]


@pytest.mark.both_databases
def test_within_a_band_and_a_filter(store: Store) -> None:
    config = fill(store).config
    low, high = VALUES[8], VALUES[24]
    assert low is not None
    assert high is not None
    band = ScoreBand(config, min(low, high), max(low, high))
    where = TraceFilter(models=("m0",))
    inside = {n for n in range(0, 60, 2) if (value := VALUES[n]) is not None and band.low <= value <= band.high}  # type: ignore[operator]
    assert {8, 24} <= inside
    for order in ("newest", "highest", "lowest"):
        assert {number(line) for line in walk(store, where, band, order, 4)} == inside
    assert store.lines.count(where, band=band, limit=100) == len(inside)
    assert store.lines.count(TraceFilter(), band=ScoreBand(config), scored=True, limit=100) == 48
    assert store.lines.count(TraceFilter(), band=ScoreBand(config), limit=100) == 60
    assert store.lines.count(TraceFilter(), limit=10) == 10


def test_without_scores(store: Store) -> None:
    fill(store)
    lines = walk(store, TraceFilter(), None, "newest", 25)
    assert len(lines) == 60
    assert {line.value for line in lines} == {None}

"""Counts that are looked up by day are those of the traces, whatever was written and however they are cut."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from calibrate.types import Chosen, Label, Record, Trace, TraceFilter
from db import Store, open_store
from tests.db.make import NOW, records, trace

pytestmark = pytest.mark.both_databases

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
MIDNIGHTS = [FIRST + timedelta(days=days) for days in range(5)]
PLACES = [at + shift for at in MIDNIGHTS for shift in (timedelta(0), timedelta(microseconds=-1), timedelta(hours=9))]
TIMES = st.none() | st.sampled_from(PLACES)
MODELS = st.sampled_from([None, "a", "b"])
WINDOWS = st.builds(
    TraceFilter,
    since=st.none() | st.sampled_from(PLACES).map(lambda at: at.astimezone(timezone(timedelta(hours=-5)))),
    until=st.none() | st.sampled_from(PLACES),
    undated=st.booleans(),
    models=st.sampled_from([(), ("a",), ("a", "(none)")]),
    operations=st.sampled_from([(), ("chat",)]),
    label=st.sampled_from(["any", "unlabelled", "labelled", "clean"]),
    unpurged_at=st.none() | st.just(NOW + timedelta(days=1)),
)


def matches(where: TraceFilter, one: Trace, gold: str | None, *, purged: bool) -> bool:
    if where.since or where.until:
        if one.timestamp is None:
            if not where.undated:
                return False
        elif (where.since and one.timestamp < where.since) or (where.until and one.timestamp >= where.until):
            return False
    elif one.timestamp is None and not where.undated:
        return False
    labels = {"any": True, "unlabelled": gold is None, "labelled": gold is not None, "clean": gold == "clean"}
    named = [(where.models, one.model), (where.operations, one.operation)]
    return (
        labels[where.label]
        and all((value or "(none)") in chosen for chosen, value in named if chosen)
        and not (where.unpurged_at and purged)
    )


@pytest.fixture
def mixed(store: Store) -> tuple[Store, list[tuple[Trace, str | None, bool]]]:
    """120 traces around midnights, some undated, labelled or purged."""
    all_traces = [
        trace(n, timestamp=None if n % 11 == 0 else PLACES[n % len(PLACES)], model=(None, "a", "b")[n % 3],
              operation="chat" if n % 2 else None, attributes={})
        for n in range(1, 121)
    ]  # fmt: skip
    store.traces.add([Record(n, one) for n, one in enumerate(all_traces, 1)], labels_as=None, now=NOW)
    gold = {n: "clean" if n % 2 else "hallucinated" for n in range(1, 121, 5)}
    for n, verdict in gold.items():
        store.labels.add(n, Label(f"t{n}", "ann", verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]
    gone = [n for n in range(1, 121) if n % 9 == 0]
    store.purges.remove(Chosen(trace_ids=tuple(f"t{n}" for n in gone)), by="ann", now=NOW)
    return store, [(one, gold.get(n), n in gone) for n, one in enumerate(all_traces, 1)]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=WINDOWS)
def test_counts_are_those_of_the_traces(mixed: tuple[Store, list[Any]], where: TraceFilter) -> None:
    store, rows = mixed
    inside = [one for one, gold, purged in rows if matches(where, one, gold, purged=purged)]
    dated = [one.timestamp for one in inside if one.timestamp]
    assert store.traces.count(where) == len(inside)
    assert store.traces.facet(where, "model") == Counter(one.model or "(none)" for one in inside)
    assert store.traces.per_day(where) == Counter(f"{at:%Y-%m-%d}" for at in dated)
    span = store.traces.span(where)
    assert span == ((len(dated), min(dated), max(dated)) if dated else None)


def test_values_and_their_days_are_those_of_the_traces(mixed: tuple[Store, list[Any]]) -> None:
    store, rows = mixed
    for by in ("model", "operation"):
        times: dict[str, list[datetime | None]] = {}
        for one, _, _ in rows:
            times.setdefault(getattr(one, by) or "(none)", []).append(one.timestamp)
        spans = {span.value: (span.traces, span.first, span.last) for span in store.traces.values(by)}
        dated = {value: [at for at in all_times if at] for value, all_times in times.items()}
        assert spans == {value: (len(times[value]), min(dated[value]), max(dated[value])) for value in times}
        days = {value: Counter(at.date() for at in dated[value]) for value in times}
        assert store.traces.values_per_day(by, list(times)) == days


def test_whoever_writes_to_the_traces_is_counted(store: Store) -> None:
    """Many at once, one after another, a changed model, a trace that goes: the table follows in each transaction."""
    store.traces.add(records(200), labels_as=None, now=NOW)
    store.traces.add([Record(1, trace(999, model=None, timestamp=None))], labels_as=None, now=NOW)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE traces SET model = 'c' WHERE id <= 30"))
        connection.execute(text("DELETE FROM sources WHERE trace_pk > 190"))
        connection.execute(text("DELETE FROM traces WHERE id > 190"))
    assert store.traces.count(TraceFilter()) == 190
    assert store.traces.facet(TraceFilter(), "model")["c"] == 30
    plain = TraceFilter(attributes={"channel": "web"})  # counted from the traces
    both = sum(store.traces.count(replace(plain, attributes={"channel": name})) for name in ("web", "app"))
    assert both == 190
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM trace_days WHERE traces < 0")) == 0


def test_the_last_day_there_is_has_bounds(store: Store) -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    store.traces.add([Record(1, Trace("t", "a", timestamp=last))], labels_as=None, now=last)
    for since, n in ((datetime(9999, 12, 31, tzinfo=UTC), 1), (last, 1), (last.replace(microsecond=1), 0)):
        assert store.traces.count(TraceFilter(since=since, undated=False)) == n


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_zone_of_a_server_changes_no_time(store: Store, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = [datetime(1, 1, 1, tzinfo=UTC), NOW, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)]
    given = [Record(line, Trace(f"t{line}", "a", timestamp=time)) for line, time in enumerate(times)]
    store.traces.add(given, labels_as=None, now=NOW)
    monkeypatch.setenv("PGTZ", zone)
    with closing(open_store(store.url)) as other:
        assert [trace.timestamp for trace in other.traces.load([1, 2, 3])] == times
        assert other.traces.per_day(TraceFilter(undated=False)) == store.traces.per_day(TraceFilter(undated=False))

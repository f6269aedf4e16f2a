"""What releases decided: kept once, counted by the trace's day, and what is still to be decided found by keys."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from calibrate.types import Tier, TraceFilter
from db import Store
from db.decisions import StoredDecision
from tests.db.make import NOW, records

TIERS: tuple[Tier, ...] = ("page", "signal", "off")


def released(store: Store, *versions: int) -> None:
    """Rows of releases, for decisions to belong to. What their documents hold is no matter here."""
    for version in versions:
        with store.releases.adding(lambda *_: "a document", by="ann", note="", now=NOW) as row:
            assert row.version == version


def decided(pk: int, version: int = 1, tier: Tier = "off", **given: Any) -> StoredDecision:
    flags = () if tier == "off" else ("rouge_l",)
    reasons = tuple(f"{name} 0.2 ≤ 0.5" for name in flags)
    verdict = "REVIEW" if flags else "ACCEPT"
    usual = StoredDecision(pk, version, verdict, tier, flags, reasons, {"rouge_l": 0.2, "bleu": None}, NOW)
    return replace(usual, **given)


@pytest.fixture
def filled(store: Store) -> Store:
    """Thirty traces, an hour apart: t1 is key 1 and the newest. Releases 1 and 2."""
    store.traces.add(records(30), labels_as=None, now=NOW)
    released(store, 1, 2)
    return store


def test_a_decision_comes_back_as_it_was_kept_and_the_first_one_stands(filled: Store) -> None:
    first = decided(3, tier="page")
    assert filled.decisions.keep([first, decided(4)]) == {3, 4}
    assert filled.decisions.keep([decided(3, tier="signal"), decided(5)]) == {5}
    assert filled.decisions.of(3) == [first]
    assert filled.decisions.keep([]) == set()


def test_each_release_decides_for_itself_and_the_newest_comes_first(filled: Store) -> None:
    filled.decisions.keep([decided(3, 1), decided(3, 2, "page"), decided(4, 1)])
    assert [one.version for one in filled.decisions.of(3)] == [2, 1]
    assert filled.decisions.newest([3, 4, 5]) == {3: decided(3, 2, "page"), 4: decided(4, 1)}
    assert filled.decisions.counts(1) == {"off": 2}
    assert filled.decisions.counts(2) == {"page": 1}


def test_flags_are_counted_on_the_day_of_the_trace_and_not_of_the_decision(filled: Store) -> None:
    stored = {pk: filled.traces.get(pk) for pk in range(1, 31)}
    rows = [decided(pk, tier=TIERS[pk % 3], decided_at=NOW + timedelta(days=9)) for pk in stored]
    filled.decisions.keep(rows)
    days = {pk: one.trace.timestamp.date().isoformat() for pk, one in stored.items() if one and one.trace.timestamp}
    for tier in ("page", "signal"):
        expected = Counter(days[row.trace_pk] for row in rows if row.tier == tier)
        assert filled.decisions.per_day()[tier] == dict(expected)
    since = NOW - timedelta(hours=5)
    window = filled.decisions.per_day(since=since, until=NOW)
    assert sum(window["page"].values()) == sum(TIERS[pk % 3] == "page" for pk in range(1, 6))  # t1 … t5, an hour each
    again = [decided(pk, 2, "off" if pk % 3 == 0 else "signal") for pk in range(1, 11)]  # a later release looks again
    filled.decisions.keep(again)
    newest = {one.trace_pk: one.tier for one in (*rows, *again)}
    for tier in ("page", "signal"):
        expected = Counter(days[pk] for pk, found in newest.items() if found == tier)
        assert filled.decisions.per_day()[tier] == dict(expected)


def test_what_is_lacking_is_what_was_not_decided_in_the_order_asked(filled: Store) -> None:
    filled.decisions.keep([decided(pk) for pk in range(5, 31)] + [decided(2, 2)])
    assert list(filled.decisions.lacking(1, TraceFilter())) == [1, 2, 3, 4]  # key 1 is the newest
    assert list(filled.decisions.lacking(1, TraceFilter(), newest_first=False)) == [4, 3, 2, 1]
    assert list(filled.decisions.lacking(1, TraceFilter(), limit=2)) == [1, 2]
    assert list(filled.decisions.lacking(2, TraceFilter(), after=27)) == [28, 29, 30]
    assert list(filled.decisions.lacking(1, TraceFilter(since=NOW - timedelta(hours=2), undated=False))) == [1, 2]
    assert filled.decisions.newest_trace() == 30


def test_undated_traces_come_last_and_only_where_they_are_asked_for(filled: Store) -> None:
    filled.traces.add(
        [replace(one, trace=replace(one.trace, id=f"u{one.line}")) for one in records(2, timestamp=None)],
        labels_as=None,
        now=NOW,
    )
    filled.decisions.keep([decided(pk) for pk in range(4, 31)])
    assert list(filled.decisions.lacking(1, TraceFilter())) == [1, 2, 3, 32, 31]
    assert list(filled.decisions.lacking(1, TraceFilter(), limit=4)) == [1, 2, 3, 32]
    assert list(filled.decisions.lacking(1, TraceFilter(undated=False))) == [1, 2, 3]


def plan(store: Store, statement: str) -> str:
    """How SQLite means to answer."""
    with store.engine.connect() as connection:
        return "\n".join(row[-1] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {statement}")))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # PostgreSQL plans by the sizes it has counted
def test_what_is_lacking_is_found_by_keys_alone(filled: Store) -> None:
    """No table is read and nothing sorted, so it grows with the window and not with the texts; and with a key to begin
    after, it grows with the traces that came since."""
    asked: list[str] = []

    def listener(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        asked.append(statement.replace("?", "{}").format(*map(repr, parameters)))

    event.listen(filled.engine, "before_cursor_execute", listener)
    window = TraceFilter(since=NOW - timedelta(days=14), undated=False)
    filled.decisions.lacking(1, window)
    [whole] = [statement for statement in asked if statement.startswith("SELECT")]
    event.remove(filled.engine, "before_cursor_execute", listener)
    said = plan(filled, whole)
    assert "USING COVERING INDEX ix_traces_time" in said
    assert "SEARCH decisions USING PRIMARY KEY" in said or "SEARCH decisions USING COVERING INDEX" in said
    assert "TEMP B-TREE" not in said


def test_flags_of_a_detector_are_those_of_the_newest_release(filled: Store) -> None:
    """Counted by hand: each detector that flags counts, and what a later release let pass is no flag any more."""
    both = ("bleu", "rouge_l")
    rows = [decided(1, tier="page", flags=both), decided(2, tier="signal"), decided(3), decided(4, tier="page")]
    filled.decisions.keep([*rows, decided(4, 2)])
    stored = {pk: filled.traces.get(pk) for pk in (1, 2)}
    days = {pk: one.trace.timestamp.date().isoformat() for pk, one in stored.items() if one and one.trace.timestamp}
    assert filled.decisions.flags_per_day() == {
        "bleu": {days[1]: 1}, "rouge_l": dict(Counter(days.values())),
    }  # fmt: skip
    assert filled.decisions.flags_per_day(since=NOW + timedelta(days=1)) == {}
    looked_at = [one.trace.timestamp for pk in (1, 2, 3, 4) if (one := filled.traces.get(pk)) and one.trace.timestamp]
    assert filled.decisions.last_day(since=min(looked_at)) == max(looked_at).date().isoformat()
    assert filled.decisions.last_day(since=NOW + timedelta(days=1)) is None
    assert [(trace, row.trace_pk) for trace, _, row in filled.decisions.flagged(TraceFilter(), limit=9)] == [
        ("t1", 1), ("t2", 2),
    ]  # fmt: skip
    assert len(filled.decisions.flagged(TraceFilter(), limit=1)) == 1
    assert filled.decisions.flagged(TraceFilter(label="labelled"), limit=9) == []

"""Traces in the store, on both databases."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import text

from calibrate.types import Label, Record, TraceFilter
from db import Store
from tests.db.make import NOW, label, records, rich, trace


def test_a_trace_comes_back_as_it_went_in(store: Store) -> None:
    given = rich()
    store.traces.add([Record(1, given)], labels_as=None, now=NOW)
    stored = store.traces.get(store.traces.find("rich") or 0)
    assert stored is not None
    assert stored.trace == given
    assert stored.trace.content_hash() == given.content_hash()


@pytest.mark.parametrize("schema", [True, False, {}, {"type": "object"}])
def test_every_json_schema_survives_and_is_not_taken_for_none(store: Store, schema: object) -> None:
    store.traces.add([Record(1, trace(1, schema=schema))], labels_as=None, now=NOW)
    assert store.traces.load([1])[0].schema == schema


def test_importing_again_adds_nothing_and_a_changed_trace_is_a_conflict(store: Store) -> None:
    first = store.traces.add(records(10), labels_as=None, now=NOW)
    again = store.traces.add(records(10), labels_as=None, now=NOW)
    changed = store.traces.add([Record(7, trace(1, answer="other"))], labels_as=None, now=NOW)
    assert (first.imported, again.imported, again.duplicates) == (10, 0, 10)
    assert changed.imported == 0
    assert changed.conflicts == ((7, "t1"),)
    assert store.traces.load([1])[0].answer == "answer 1"


def test_duplicates_within_one_batch(store: Store) -> None:
    batch = [Record(1, trace(1)), Record(2, trace(1)), Record(3, trace(1, answer="other"))]
    added = store.traces.add(batch, labels_as=None, now=NOW)
    assert (added.imported, added.duplicates, [line for line, _ in added.conflicts]) == (1, 1, [3])


def test_shared_texts_are_kept_once(store: Store) -> None:
    store.traces.add(records(60), labels_as=None, now=NOW)
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM texts")) == len({n // 6 for n in range(1, 61)})


def test_labels_come_in_once_under_the_name_given(store: Store) -> None:
    record = Record(1, trace(1), (Label("t1", "", "hallucinated", ("fabrication",)),))
    assert store.traces.add([record], labels_as="gold", now=NOW).labels == 1
    assert store.traces.add([record], labels_as="gold", now=NOW).labels == 0
    assert store.traces.add([record], labels_as="other", now=NOW).labels == 1
    assert store.traces.add([record], labels_as=None, now=NOW).labels == 0
    assert [one.labeller for one in store.labels.of_trace(1)] == ["gold", "other"]


def test_paging_shows_every_trace_once_newest_first_undated_last(store: Store) -> None:
    given = [
        replace(one, trace=replace(one.trace, timestamp=None)) if one.line % 5 == 0 else one for one in records(53)
    ]
    store.traces.add(given, labels_as=None, now=NOW)
    seen, after = [], None
    while True:
        page = store.traces.page(TraceFilter(), limit=7, after=after)
        seen += page.lines
        if (after := page.after) is None:
            break
    times = [line.timestamp for line in seen]
    dated = [time for time in times if time is not None]
    assert len({line.id for line in seen}) == len(seen) == 53
    assert dated == sorted(dated, reverse=True)
    assert times[len(dated) :] == [None] * (53 - len(dated))


def test_filters(store: Store) -> None:
    store.traces.add([*records(40), Record(41, trace(41, timestamp=None, model=None))], labels_as=None, now=NOW)
    store.labels.add(1, label("clean"), sample_id=None, now=NOW)
    store.labels.add(2, label("hallucinated"), sample_id=None, now=NOW)
    count = store.traces.count
    assert count(TraceFilter()) == 41
    assert count(TraceFilter(undated=False)) == 40
    window = TraceFilter(since=NOW - timedelta(hours=10), until=NOW - timedelta(hours=5), undated=False)
    assert count(window) == 5  # hours 6..10: since inclusive, until exclusive
    assert count(replace(window, undated=True)) == 6
    assert store.traces.undated(window) == 1
    assert count(TraceFilter(models=("b",))) == 13
    assert count(TraceFilter(models=("(none)",))) == 1
    assert count(TraceFilter(attributes={"channel": "web"})) == 21
    assert count(TraceFilter(label="labelled")) == 2
    assert count(TraceFilter(label="hallucinated")) == 1
    assert count(TraceFilter(label="unlabelled")) == 39
    assert count(TraceFilter(text="ANSWER 4")) == 3  # 4, 40 and 41
    assert count(TraceFilter(text="%")) == 0
    assert count(TraceFilter(), limit=7) == 7
    assert store.traces.facet(TraceFilter(undated=False), "model") == {"a": 27, "b": 13}
    assert store.traces.facet(TraceFilter(), "nowhere") == {"(none)": 41}


def test_a_day_is_utc(store: Store) -> None:
    store.traces.add(records(30), labels_as=None, now=NOW)
    assert store.traces.per_day(TraceFilter()) == {"2026-11-19": 18, "2026-11-20": 12}


@pytest.mark.parametrize("gaps", [False, True])
def test_a_draw_is_uniform_over_what_matches(store: Store, gaps: bool) -> None:
    """Each of 60 matching traces is drawn 3/60 of the time: chi-squared over 600 draws, seeded."""
    store.traces.add(records(90), labels_as=None, now=NOW)
    where = TraceFilter(models=("a",))
    if gaps:
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE traces SET model='c' WHERE model='a' AND id < 60"))
    pool = store.traces.count(where)
    rng = np.random.default_rng(7)
    hits: Counter[int] = Counter()
    for _ in range(150):
        drawn = store.traces.draw(where, 4, population=pool, rng=rng)
        assert len(set(drawn)) == 4
        hits.update(drawn)
    expected = 600 / pool
    chi2 = sum((hits[pk] - expected) ** 2 / expected for pk, _ in next(store.traces.keys(where)))
    assert sum(hits.values()) == 600
    assert chi2 < pool + 4 * (2 * pool) ** 0.5


def test_a_draw_of_a_rare_stratum_and_of_everything(store: Store) -> None:
    store.traces.add(records(200), labels_as=None, now=NOW)
    store.traces.add([Record(201, trace(201, model="rare"))], labels_as=None, now=NOW)
    rng = np.random.default_rng(1)
    assert store.traces.draw(TraceFilter(), 5, population=1, rng=rng, stratum=("model", "rare")) == [201]
    assert len(set(store.traces.draw(TraceFilter(), 500, population=201, rng=rng))) == 201


def test_keys_come_in_chunks(store: Store) -> None:
    store.traces.add(records(25), labels_as=None, now=NOW)
    chunks = list(store.traces.keys(TraceFilter(), chunk=10))
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    assert [pk for chunk in chunks for pk, _ in chunk] == list(range(1, 26))


@pytest.mark.parametrize("name", ["größe", "⊕", "a + b", "a.b", 'q"t', "back\\slash", "two\nlines", "😀", "it's", "$"])
def test_an_attribute_may_be_called_anything(store: Store, name: str) -> None:
    sizes = ["klein", "groß", "groß"]
    store.traces.add(
        [Record(line, trace(line, attributes={name: size, "x": 1})) for line, size in enumerate(sizes, 1)],
        labels_as=None,
        now=NOW,
    )
    store.traces.add([Record(9, trace(9, attributes={}))], labels_as=None, now=NOW)
    assert store.traces.count(TraceFilter(attributes={name: "groß"})) == 2
    assert store.traces.facet(TraceFilter(), name) == {"groß": 2, "klein": 1, "(none)": 1}

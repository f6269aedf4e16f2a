"""Scores of many traces: tallies, what is lacking, several configurations side by side; traces by value and day."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from calibrate.types import Score, TraceFilter
from db import Store
from db.traces import ValueSpan
from tests.db.make import NOW, label, records
from tests.db.test_revision import draw_sample

STATES = {  # trace key → what the first configuration made of it; the others have no score
    1: Score("", 0.1), 2: Score("", 0.2), 3: Score("", None, "no sources", "abstained"),
    4: Score("", None, "timeout", "failed"), 5: Score("", None, "I cannot say", "refusal"),
    6: Score("", None, "Nor can I", "refusal"),
}  # fmt: skip


@pytest.fixture
def scored(store: Store) -> Store:
    """Twelve traces: configuration 1 scored six of them, configuration 2 all but the first."""
    store.traces.add(records(12), labels_as=None, now=NOW)
    hashes = dict(next(store.traces.keys(TraceFilter())))
    for version in ("1", "2"):
        store.scores.config("overlap", version, {}, "", now=NOW)
    for pk, score in STATES.items():
        store.scores.save(1, [(hashes[pk], score)], now=NOW + timedelta(minutes=pk))
    store.scores.save(2, [(hashes[pk], Score("", pk / 100)) for pk in range(2, 13)], now=NOW)
    for pk in (1, 3, 8):
        store.labels.add(pk, label("clean"), sample_id=None, now=NOW)
    draw_sample(store, "w", 5, 6, 4, 9)
    return store


def test_tallies_count_statuses_of_the_selected_traces(scored: Store) -> None:
    tallies = scored.coverage.tallies()
    assert tallies[1].counts == Counter(
        {("scored", None): 2, ("abstained", "no sources"): 1, ("failed", "timeout"): 1, ("refusal", None): 2}
    )
    assert tallies[1].last == NOW + timedelta(minutes=6)
    assert tallies[2].counts == Counter({("scored", None): 11})
    labelled = scored.coverage.tallies(labelled=True, config_id=1)
    assert {config: tally.counts.total() for config, tally in labelled.items()} == {1: 2}
    assert scored.coverage.tallies(sample_id=1, config_id=1)[1].counts[("refusal", None)] == 2


def test_what_is_lacking_counts_failures(scored: Store) -> None:
    assert list(scored.coverage.lacking(1)) == [4, 7, 8, 9, 10, 11, 12]
    assert list(scored.coverage.lacking(1, labelled=True)) == [8]
    assert list(scored.coverage.lacking(1, sample_id=1)) == [4, 9]
    assert list(scored.coverage.lacking(2)) == [1]


def test_counts_leave_refusals_out(scored: Store) -> None:
    assert (scored.coverage.count(1, TraceFilter()), scored.coverage.count_refusals(1, TraceFilter())) == (4, 2)
    assert scored.coverage.count(2, TraceFilter(), random=True) == 4
    assert scored.coverage.count(2, TraceFilter(models=("b",))) == 4  # 3, 6, 9 and 12


def test_side_by_side_are_the_traces_that_all_were_asked_about(scored: Store) -> None:
    matrix = scored.coverage.side_by_side([1, 2], TraceFilter())
    assert np.array_equal(matrix.scores, [[0.2, 0.02], [np.nan, 0.03], [np.nan, 0.04]], equal_nan=True)
    assert matrix.refusals == 2
    halved = scored.coverage.side_by_side([2], TraceFilter(), every=2)
    assert halved.scores[:, 0].tolist() == [0.02, 0.04, 0.06, 0.08, 0.1, 0.12]


def test_a_draw_takes_no_more_than_asked_and_each_trace_once(scored: Store) -> None:
    drawn = scored.coverage.draw(2, TraceFilter(), 5, rng=np.random.default_rng(1))
    assert len(set(drawn.scores.tolist())) == 5
    every = scored.coverage.draw(2, TraceFilter(), 50, rng=np.random.default_rng(1))
    assert sorted(every.scores.tolist()) == [pk / 100 for pk in range(2, 13)]


def test_a_pool_is_the_store_as_it_was_at_one_moment(scored: Store) -> None:
    at = scored.pools.moment()
    assert (at.trace, at.label, at.sample) == (12, 3, 1)
    newer = [replace(record, trace=replace(record.trace, id="new")) for record in records(1)]
    scored.traces.add(newer, labels_as=None, now=NOW)
    assert scored.pools.keys(TraceFilter(), at).tolist() == list(range(1, 13))
    keys, scores = scored.pools.scores(TraceFilter(), at, [2, 1])
    assert keys.tolist() == list(range(1, 13))
    assert np.array_equal(scores[:3], [[np.nan, 0.1], [0.02, 0.2], [0.03, np.nan]], equal_nan=True)
    assert scored.pools.count_scored(TraceFilter(), [1]) == 3  # 1, its copy, and 2
    assert scored.pools.among(TraceFilter(models=("b",)), 9, [3, 4, 12]) == [3]


def test_traces_by_value_and_day(scored: Store) -> None:
    undated = [replace(record, trace=replace(record.trace, id="u", timestamp=None)) for record in records(1)]
    scored.traces.add(undated, labels_as=None, now=NOW)
    hours = [NOW - timedelta(hours=n) for n in range(1, 13)]
    assert scored.traces.values("model") == [
        ValueSpan("a", 9, hours[10], hours[0]), ValueSpan("b", 4, hours[11], hours[2])
    ]  # fmt: skip
    days = scored.traces.values_per_day("model", ["b", "nobody"])
    assert days == {"b": {date(2026, 11, 20): 4}}
    assert scored.traces.labelled_values("model") == {1: "a", 3: "b", 8: "a"}
    assert scored.traces.answer_lengths() == {pk: len(f"answer {pk}") for pk in (1, 3, 8)}

"""Reads of the store use indexes: the plans of what its methods execute, on stores that a planner takes for large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from calibrate.types import TraceFilter
from db import Store, open_store
from db.listing.lines import ScoreBand
from tests.bench import size_store

pytestmark = pytest.mark.both_databases

TRACES = 30_000
LARGE = {"traces", "scores"}
NOW = size_store.NOW
ALL = TraceFilter()
DAY = TraceFilter(since=NOW - timedelta(days=1), until=NOW, undated=False)
ODD = TraceFilter(since=NOW - timedelta(days=3, hours=5), until=NOW - timedelta(hours=2))
MONTH = TraceFilter(since=NOW - timedelta(days=30), undated=False)
PKS = list(range(100, 150))
BAND = ScoreBand(1, low=0.9999)


def filtered(**changes: Any) -> TraceFilter:
    return TraceFilter(**{"since": DAY.since, "until": DAY.until, "undated": False, **changes})


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


READS: dict[str, Callable[[Store], object]] = {
    "traces.page": lambda s: s.traces.page(ALL, after=s.traces.page(ALL).after),
    "traces.page of a model": lambda s: s.traces.page(TraceFilter(models=("m1",))),
    "traces.count": lambda s: s.traces.count(ALL),
    "traces.count of a day": lambda s: s.traces.count(DAY),
    "traces.count across days": lambda s: s.traces.count(ODD),
    "traces.count unlabelled": lambda s: s.traces.count(TraceFilter(label="unlabelled")),
    "traces.count labelled": lambda s: s.traces.count(TraceFilter(label="labelled")),
    "traces.count any": lambda s: s.traces.count(ALL, limit=1),
    "traces.undated": lambda s: s.traces.undated(ALL),
    "traces.get": lambda s: s.traces.get(77),
    "traces.find": lambda s: s.traces.find("t-77"),
    "traces.keys_of": lambda s: s.traces.keys_of(["t-1", "t-2"]),
    "traces.labelled": lambda s: s.traces.labelled(["t-1", "t-2"]),
    "traces.load": lambda s: s.traces.load(PKS),
    "traces.keys": lambda s: next(s.traces.keys(ALL)),
    "traces.hashes": lambda s: list(s.traces.hashes(PKS)),
    "traces.summary": lambda s: s.traces.summary(),
    "traces.facet": lambda s: s.traces.facet(MONTH, "model"),
    "traces.facet of an attribute": lambda s: s.traces.facet(DAY, "channel"),
    "traces.values": lambda s: s.traces.values("model"),
    "traces.labelled_values": lambda s: s.traces.labelled_values("model"),
    "traces.values_per_day": lambda s: s.traces.values_per_day("operation", ["rag"]),
    "traces.answer_lengths": lambda s: s.traces.answer_lengths(),
    "traces.operations": lambda s: s.traces.operations(),
    "traces.per_day": lambda s: s.traces.per_day(MONTH),
    "traces.per_day unlabelled": lambda s: s.traces.per_day(filtered(label="unlabelled")),
    "traces.span": lambda s: s.traces.span(MONTH),
    "traces.attribute_names": lambda s: s.traces.attribute_names(),
    "traces.draw": lambda s: s.traces.draw(MONTH, 100, population=16_000, rng=rng()),
    "lines.window": lambda s: s.lines.window(ALL),
    "lines.window of scores": lambda s: s.lines.window(ALL, band=ScoreBand(1), order="highest"),
    "lines.window of low scores": lambda s: s.lines.window(MONTH, band=ScoreBand(2), order="lowest"),
    "lines.window of a band": lambda s: s.lines.window(ALL, band=BAND, order="highest"),
    "lines.count": lambda s: s.lines.count(ALL, limit=1000),
    "lines.count of a band": lambda s: s.lines.count(ALL, band=BAND, limit=1000),
    "scores.configs": lambda s: s.scores.configs(size_store.DETECTORS[0]),
    "scores.reusable": lambda s: s.scores.reusable(1, ["0" * 32]),
    "scores.failed": lambda s: s.scores.failed(1, ["0" * 32]),
    "scores.of_trace": lambda s: s.scores.of_trace(77),
    "scores.evidence": lambda s: s.scores.evidence(1, PKS),
    "scores.labelled": lambda s: s.scores.labelled(1),
    "scores.outcomes": lambda s: next(s.scores.outcomes(1)),
    "scores.outcomes of a sample": lambda s: next(s.scores.outcomes(1, sample_id=1)),
    "scores.costs": lambda s: s.scores.costs(1),
    "scores.newest_costs": lambda s: s.scores.newest_costs(1, limit=100),
    "scores.has_evidence": lambda s: s.scores.has_evidence(1),
    "scores.members": lambda s: s.scores.members(1, 1),
    "coverage.tallies of the labelled": lambda s: s.coverage.tallies(labelled=True),
    "coverage.tallies of a sample": lambda s: s.coverage.tallies(sample_id=1),
    "coverage.fields of the labelled": lambda s: s.coverage.fields(labelled=True),
    "coverage.fields of a sample": lambda s: s.coverage.fields(sample_id=1),
    "coverage.draw": lambda s: s.coverage.draw(1, MONTH, 50, rng=rng()),
    "pools.moment": lambda s: s.pools.moment(),
    "pools.among": lambda s: s.pools.among(ALL, None, PKS),
    "pools.count_scored of some": lambda s: s.pools.count_scored(ALL, [1, 2, 3], pks=PKS),
    "decisions.of": lambda s: s.decisions.of(77),
    "decisions.newest": lambda s: s.decisions.newest(PKS),
    "decisions.newest_trace": lambda s: s.decisions.newest_trace(),
    "decisions.last_day": lambda s: s.decisions.last_day(since=NOW - timedelta(days=30)),
    "decisions.counts": lambda s: s.decisions.counts(1),
    "labels.place": lambda s: s.labels.place(1, "ann"),
    "labels.of_trace": lambda s: s.labels.of_trace(77),
    "labels.gold_counts": lambda s: s.labels.gold_counts(),
    "labels.decided_since": lambda s: s.labels.decided_since(NOW),
    "labels.kinds": lambda s: s.labels.kinds(PKS),
    "samples.lines": lambda s: s.samples.lines(1),
    "samples.verdicts": lambda s: s.samples.verdicts(1),
    "samples.keys": lambda s: s.samples.keys(1),
    "prompt_examples.set_aside": lambda s: s.prompt_examples.set_aside(),
    "purges.newest": lambda s: s.purges.newest(),
    "purges.of_traces": lambda s: s.purges.of_traces(PKS),
}
# What must read a large table as a whole, and why.
READ_ALL: dict[str, tuple[Callable[[Store], object], str]] = {
    "traces.facet of an attribute, of all": (lambda s: s.traces.facet(ALL, "channel"), "attributes are documents"),
    "traces.count of a text": (lambda s: s.traces.count(TraceFilter(text="parcel")), "texts have no index"),
    "coverage.tallies": (lambda s: s.coverage.tallies(), "one row a score"),
    "coverage.fields": (lambda s: s.coverage.fields(), "what each trace has"),
    "coverage.side_by_side": (lambda s: s.coverage.side_by_side([1, 2], ALL), "every score is an answer"),
    "pools.count_scored": (lambda s: s.pools.count_scored(ALL, [1]), "up to 100,000 traces, beyond them an estimate"),
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Scores of three detectors and 500 labels, with the statistics that a planner goes by."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('plans')}/plans.db"
    else:
        url = request.getfixturevalue("postgres_database")("plans")
    size_store.build(url, TRACES, labels=40)
    with closing(open_store(url)) as store:
        yield store


@pytest.mark.parametrize("name", READS)
def test_a_read_finds_its_rows_by_an_index(large: Store, name: str) -> None:
    assert scans(large, READS[name]) == []


@pytest.mark.parametrize("name", READ_ALL)
def test_what_must_read_all_still_does(large: Store, name: str) -> None:
    """One that no longer does belongs to the others. SQLite looks each row up and calls it a search."""
    call, _ = READ_ALL[name]
    assert scans(large, call) != [] or large.engine.dialect.name == "sqlite"


def scans(store: Store, call: Callable[[Store], object]) -> list[str]:
    """The parts of plans that read a large table, or an index of it, from end to end."""
    statements: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        call(store)
    finally:
        event.remove(store.engine, "before_cursor_execute", note)
    assert statements
    read = _on_sqlite if store.engine.dialect.name == "sqlite" else _on_postgresql
    with store.engine.connect() as connection:
        return [
            f"{scan}: {statement}" for statement, parameters in statements
            if statement.startswith("SELECT") for scan in read(connection, statement, parameters)
        ]  # fmt: skip


def _on_sqlite(connection: Any, statement: str, parameters: Any) -> Iterator[str]:
    steps = [step for *_, step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    is_sorted = any(step.startswith("USE TEMP B-TREE FOR ORDER") for step in steps)
    stops_early = ("LIMIT" in statement and not is_sorted) or "min(" in statement or "max(" in statement
    for step in steps:
        if step.startswith("SCAN") and step.split()[1] in LARGE and not stops_early:
            yield step


def _on_postgresql(connection: Any, statement: str, parameters: Any) -> Iterator[str]:
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    plan = json.loads(plan) if isinstance(plan, str) else plan
    yield from _walk(plan[0]["Plan"], stops_early=False)


def _walk(node: dict[str, Any], *, stops_early: bool) -> Iterator[str]:
    kind = node["Node Type"]
    stops_early = kind == "Limit" or (stops_early and kind not in ("Sort", "Aggregate", "Hash"))
    is_whole = "Index Cond" not in node and kind != "Bitmap Heap Scan" and not stops_early
    if node.get("Relation Name") in LARGE and is_whole:
        yield f"{kind} of {node['Relation Name']}"
    for below in node.get("Plans", ()):
        yield from _walk(below, stops_early=stops_early)

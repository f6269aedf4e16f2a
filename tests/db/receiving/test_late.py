"""Traces that get more content after their import, and those that must not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from calibrate.types import Chosen, Label, Member, Record, Source, TraceFilter
from db import Store
from db.decisions import StoredDecision
from db.labelling.assignments import Assignment
from tests.db.make import NOW, records, rich, trace


def label(store: Store) -> None:
    store.labels.add(2, Label("t2", "ann", "clean"), sample_id=None, now=NOW)


def sample(store: Store) -> None:
    options = {"design": "random", "by": None, "seed": 1, "pool": 3, "undated": 0}
    members = [Member(2, 0.5, "all")]
    store.samples.add("s", where=TraceFilter(), strata={"all": (2, 1)}, members=members, now=NOW, **options)


def lease(store: Store) -> None:
    sample(store)
    store.assignments.set(store.samples.list()[0], Assignment("split"), by="ann", now=NOW)
    store.assignments.take(1, "ann", 1, now=NOW, until=NOW + timedelta(hours=1))


def decide(store: Store) -> None:
    with store.releases.adding(lambda *_: "a document", by="ann", note="", now=NOW):
        pass
    store.decisions.keep([StoredDecision(2, 1, "ACCEPT", "off", (), (), {}, NOW)], tell=set())


def flag(store: Store) -> None:
    store.flags.put(2, "ann", sample_id=None, note=None, now=NOW)


def purge(store: Store) -> None:
    store.purges.remove(Chosen(trace_ids=("t2",)), by="ann", now=NOW)


def test_a_trace_takes_all_of_its_new_content(store: Store) -> None:
    store.traces.add(records(3), labels_as=None, now=NOW)
    whole = rich("t2")
    assert store.late.replace([(trace(2).content_hash(), Record(1, whole))], now=NOW) == {"t2"}
    assert store.late.load(["t2"])["t2"] == whole
    assert store.traces.load([1, 3]) == [trace(1), trace(3)]
    assert store.traces.facet(TraceFilter(), "model") == {"a": 1, "b": 1, "m": 1}
    fewer = trace(2, sources=(Source("7", "other"),))
    assert store.late.replace([(whole.content_hash(), Record(1, fewer))], now=NOW) == {"t2"}
    assert store.late.load(["t2"])["t2"] == fewer


@pytest.mark.parametrize("use", [label, sample, lease, decide, flag, purge])
def test_a_trace_that_somebody_used_stays(store: Store, use: Callable[[Store], None]) -> None:
    store.traces.add(records(3), labels_as=None, now=NOW)
    use(store)
    before = store.traces.load([2])
    changes = [(trace(n).content_hash(), Record(n, trace(n, context="more"))) for n in (1, 2)]
    assert store.late.replace(changes, now=NOW) == {"t1"}
    assert store.traces.load([2]) == before


def test_a_trace_that_changed_meanwhile_stays(store: Store) -> None:
    store.traces.add(records(1), labels_as=None, now=NOW)
    assert store.late.replace([("0" * 32, Record(1, trace(1, context="more")))], now=NOW) == frozenset()
    assert store.late.load(["t1", "t9"]) == {"t1": trace(1)}

"""Certifications and rechecks: a plan is fixed once, and so is its outcome."""

from __future__ import annotations

from datetime import timedelta

import pytest

from db import Store
from tests.db.make import NOW, records
from tests.db.test_revision import draw_sample, release

LATER = NOW + timedelta(days=1)


@pytest.fixture
def ready(store: Store) -> Store:
    """A configuration, two samples and two releases for attempts to belong to."""
    store.traces.add(records(10), labels_as=None, now=NOW)
    store.scores.config("overlap", "1", {}, "", now=NOW)
    draw_sample(store, "first", 1, 2)
    draw_sample(store, "second", 3)
    release(store)
    release(store)
    return store


def test_a_certification_has_one_fresh_sample_and_one_outcome(ready: Store) -> None:
    started = ready.certifications.start("overlap", config_id=1, sample_id=None, plan={"n": 9}, by="ann", now=NOW)
    assert (started.plan, started.outcome, started.fresh_sample_id) == ({"n": 9}, None, None)
    assert ready.certifications.set_fresh_sample(started.id, 2).fresh_sample_id == 2
    assert ready.certifications.set_fresh_sample(started.id, 1).fresh_sample_id == 2
    passed = ready.certifications.finish(started.id, {"passed": False}, now=LATER)
    assert (passed.outcome, passed.finished_at) == ({"passed": False}, LATER)
    assert ready.certifications.finish(started.id, {"passed": True}, now=NOW) == passed
    again = ready.certifications.start("overlap", config_id=1, sample_id=1, plan={}, by="bob", now=NOW)
    ready.certifications.start("rouge_l", config_id=1, sample_id=1, plan={}, by="bob", now=NOW)
    assert ready.certifications.of("overlap") == [again, passed]


def test_a_sample_has_one_recheck_with_one_outcome(ready: Store) -> None:
    first = ready.rechecks.begin("overlap", version=1, config_id=1, sample_id=1, plan={"n": 1}, by="ann", now=NOW)
    assert ready.rechecks.begin("rouge_l", version=2, config_id=1, sample_id=1, plan={}, by="bob", now=LATER) == first
    second = ready.rechecks.begin("overlap", version=2, config_id=1, sample_id=2, plan={}, by="bob", now=LATER)
    assert ready.rechecks.of() == [second, first]
    assert ready.rechecks.of("overlap", version=1) == [first]
    assert ready.rechecks.of(version=2) == [second]
    assert ready.rechecks.of("rouge_l") == []
    done = ready.rechecks.finish(first.id, {"decision": "holds"}, now=LATER)
    assert ready.rechecks.finish(first.id, {"decision": "fails"}, now=NOW) == done

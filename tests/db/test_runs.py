"""Runs in the store: one worker each, taken over from a dead one, stopped at once or after a batch."""

from __future__ import annotations

from datetime import timedelta

from db import Store
from db.runs import STALE
from tests.db.make import NOW

SECOND = timedelta(seconds=1)


def queue(store: Store, n: int = 1) -> list[int]:
    return [store.runs.queue([{"name": "overlap"}], {"everything": True}, now=NOW).id for _ in range(n)]


def test_the_oldest_waiting_run_is_claimed_once(store: Store) -> None:
    first, second = queue(store, 2)
    claimed = store.runs.claim("a", now=NOW)
    assert claimed is not None
    assert (claimed.id, claimed.status, claimed.worker, claimed.started_at) == (first, "running", "a", NOW)
    other = store.runs.claim("b", now=NOW)
    assert other is not None
    assert other.id == second
    assert store.runs.claim("c", now=NOW) is None


def test_a_run_is_named_to_claim_it(store: Store) -> None:
    _, second = queue(store, 2)
    claimed = store.runs.claim("a", now=NOW, run_id=second)
    assert claimed is not None
    assert claimed.id == second
    assert store.runs.claim("a", now=NOW, run_id=second) is None


def test_the_run_of_a_worker_that_died_goes_to_another_and_not_back(store: Store) -> None:
    (run,) = queue(store)
    store.runs.claim("dead", now=NOW)
    assert store.runs.claim("b", now=NOW + STALE) is None
    taken = store.runs.claim("b", now=NOW + STALE + SECOND)
    assert taken is not None
    assert (taken.id, taken.worker, taken.started_at) == (run, "b", NOW)
    assert not store.runs.progress(run, "dead", total=9, done=5, counts={}, now=NOW)
    store.runs.finish(run, "dead", "failed", now=NOW, error="late")
    store.runs.requeue(run, "dead", now=NOW)
    assert store.runs.get(run) == taken
    assert store.runs.progress(run, "b", total=9, done=2, counts={"overlap": {"scored": 2}}, now=NOW + 2 * STALE)
    after = store.runs.get(run)
    assert (after.total, after.done, after.counts) == (9, 2, {"overlap": {"scored": 2}})
    assert store.runs.claim("c", now=NOW + 2 * STALE + SECOND) is None


def test_stop_ends_a_waiting_run_at_once_and_a_running_one_after_its_batch(store: Store) -> None:
    waiting, running, ended = queue(store, 3)
    store.runs.claim("a", now=NOW, run_id=running)
    store.runs.claim("b", now=NOW, run_id=ended)
    store.runs.finish(ended, "b", "done", now=NOW)
    for run in (waiting, running, ended):
        store.runs.stop(run, now=NOW + SECOND)
    assert [store.runs.get(run).status for run in (waiting, running, ended)] == ["stopped", "running", "done"]
    assert store.runs.get(ended).finished_at == NOW
    assert not store.runs.progress(running, "a", total=9, done=1, counts={}, now=NOW)
    store.runs.finish(running, "a", "stopped", now=NOW)
    assert store.runs.get(running).status == "stopped"


def test_a_worker_that_is_heard_of_keeps_its_run(store: Store) -> None:
    (run,) = queue(store)
    store.runs.claim("a", now=NOW)
    store.runs.beat(run, "a", now=NOW + STALE)
    store.runs.beat(run, "another", now=NOW + 3 * STALE)
    assert store.runs.claim("b", now=NOW + 2 * STALE) is None
    assert store.runs.claim("b", now=NOW + 2 * STALE + SECOND) is not None


def test_a_run_given_back_that_somebody_stopped_is_stopped(store: Store) -> None:
    (run,) = queue(store)
    store.runs.claim("a", now=NOW)
    store.runs.stop(run, now=NOW)
    store.runs.requeue(run, "a", now=NOW + SECOND)
    ended = store.runs.get(run)
    assert (ended.status, ended.worker, ended.finished_at) == ("stopped", "a", NOW + SECOND)


def test_a_run_given_back_waits_again_and_unknown_ones_are_none(store: Store) -> None:
    first, second = queue(store, 2)
    store.runs.claim("a", now=NOW, run_id=first)
    store.runs.requeue(first, "a", now=NOW)
    assert (store.runs.get(first).status, store.runs.get(first).worker) == ("queued", None)
    assert [store.runs.find(key) for key in (0, -1, 99, 2**40)] == [None] * 4
    assert store.runs.find(first) == store.runs.get(first)
    assert [run.id for run in store.runs.recent(1)] == [second]

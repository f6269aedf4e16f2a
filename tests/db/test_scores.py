"""Scores in the store: configurations, the cache that runs fill, what scores cost and rest on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from calibrate.types import Evidence, Member, Score, Stratum, Trace, TraceFilter, Usage
from db import Store
from db.scores import Cost
from tests.db.make import NOW, label, records
from tests.db.test_team import add


@pytest.fixture
def hashes(store: Store) -> list[str]:
    """The content hashes of ten traces."""
    store.traces.add(records(10), labels_as=None, now=NOW)
    return [content for _, content in next(store.traces.keys(TraceFilter()))]


def test_the_configuration_used_last_comes_last(store: Store, hashes: list[str]) -> None:
    """Not the one made last, nor the one of the highest revision: a sweep without a choice takes the last."""
    configs = [store.scores.config("overlap", "1", {}, revision, now=NOW) for revision in ("z", "m", "a")]
    unused = store.scores.config("overlap", "2", {}, "", now=NOW)
    for config, days in zip(configs, (1, 3, 2), strict=True):
        store.scores.save(config.id, [(hashes[0], Score("", 0.5))], now=NOW + timedelta(days=days))
    assert [config.revision for config in store.scores.configs("overlap")] == ["z", "a", "m"]
    store.scores.save(configs[0].id, [(hashes[1], Score("", 0.5))], now=NOW + timedelta(days=4))
    assert [config.revision for config in store.scores.configs("overlap")] == ["a", "m", "z"]
    assert store.scores.get_configs([unused.id, configs[0].id]) == {unused.id: unused, configs[0].id: configs[0]}
    assert store.scores.find_config(99) is None


def test_a_configuration_is_made_once(store: Store) -> None:
    first = store.scores.config("overlap", "1", {"a": 1, "b": [2]}, "r", now=NOW)
    assert store.scores.config("overlap", "1", {"b": [2], "a": 1}, "r", now=NOW) == first
    assert store.scores.config("overlap", "1", {"b": [2], "a": 2}, "r", now=NOW).id != first.id


def test_failures_are_tried_again_and_a_newer_score_replaces(store: Store, hashes: list[str]) -> None:
    config = store.scores.config("overlap", "1", {}, "", now=NOW)
    scores = [Score("", 0.25), Score("", None, "no sources", "abstained"), Score("", None, "timeout", "failed")]
    store.scores.save(config.id, list(zip(hashes, scores, strict=False)), now=NOW)
    assert store.scores.reusable(config.id, hashes) == dict(zip(hashes, scores[:2], strict=False))
    assert store.scores.statuses(config.id, hashes) == {hashes[0]: "scored", hashes[1]: "abstained"}
    store.scores.save(config.id, [(hashes[2], Score("", 0.75))], now=NOW)
    assert store.scores.reusable(config.id, hashes[2:]) == {hashes[2]: Score("", 0.75)}


def test_costs_are_of_labelled_traces_and_the_newest_of_scored_ones(store: Store, hashes: list[str]) -> None:
    config = store.scores.config("judge", "1", {}, "", now=NOW)
    usage = Usage(requests=1, prompt_tokens=9, cost=0.5)
    for place, content in enumerate(hashes):
        score = Score("", None, "no", "abstained", seconds=9.0) if place == 4 else Score(
            "", 0.5, seconds=float(place), usage=usage if place % 2 else None
        )  # fmt: skip
        store.scores.save(config.id, [(content, score)], now=NOW + timedelta(minutes=place))
    for pk in (2, 5):
        store.labels.add(pk, label("clean"), sample_id=None, now=NOW)
    costs = store.scores.costs(config.id)
    assert sorted(costs, key=lambda cost: cost.seconds) == [Cost("scored", 1.0, usage), Cost("abstained", 9.0, None)]
    sample = store.samples.add(
        "w", design="random", by=None, seed=1, pool=10, undated=0, where=TraceFilter(), strata={"all": (10, 2)},
        members=[Member(5, 0.2, "all"), Member(6, 0.2, "all")], now=NOW,
    )  # fmt: skip
    assert store.scores.costs(config.id, sample_id=sample.id) == [Cost("abstained", 9.0, None)]
    newest = store.scores.newest_costs(config.id, limit=6)
    assert [cost.seconds for cost in newest] == [9.0, 8.0, 7.0, 6.0, 5.0, 3.0]
    assert not store.scores.has_evidence(config.id)
    store.scores.save(config.id, [(hashes[0], Score("", 0.5, evidence=(Evidence("why"),)))], now=NOW)
    assert store.scores.has_evidence(config.id)


def test_members_come_with_labels_scores_and_strata_in_labelling_order(store: Store, hashes: list[str]) -> None:
    config = store.scores.config("overlap", "1", {}, "", now=NOW)
    store.scores.save(config.id, [(hashes[6], Score("", 0.5))], now=NOW)
    sample = store.samples.add(
        "w", design="random", by="model", seed=1, pool=10, undated=0, where=TraceFilter(),
        strata={"a": (6, 1), "b": (4, 1)}, members=[Member(7, 0.2, "a"), Member(3, 0.2, "b")], now=NOW,
    )  # fmt: skip
    store.labels.add(7, label("clean"), sample_id=sample.id, now=NOW)
    rows = store.scores.members(config.id, sample.id)
    assert [(row.pk, row.gold, row.value, row.strata) for row in rows] == [
        (7, "clean", 0.5, (Stratum(sample.id, "a"),)),
        (3, None, None, (Stratum(sample.id, "b"),)),
    ]
    assert [(row.pk, row.strata) for row in store.scores.labelled(config.id)] == [(7, ())]


def test_the_usage_of_a_score_comes_back(store: Store) -> None:
    (content,) = add(store, Trace("t", "An answer."))
    config = store.scores.config("judge", "1", {}, "", now=NOW)
    usage = Usage(requests=2, cached=1, prompt_tokens=900, completion_tokens=40, cost=None)
    store.scores.save(config.id, [(content, Score("t", 1.0, usage=usage))], now=NOW)
    ((_, score),) = store.scores.of_trace(1)
    assert score.usage == usage


def test_evidence_comes_back_by_trace_for_the_configuration_asked(store: Store) -> None:
    first, second = add(store, Trace("t", "An answer."), Trace("u", "Another."))
    configs = [store.scores.config("overlap", version, {}, "", now=NOW) for version in ("1", "2")]
    pieces = (Evidence("An", 0.2, 0, 2, "1", (3, 9)), Evidence("answer", None))
    store.scores.save(configs[0].id, [(first, Score("t", 1.0, evidence=pieces)), (second, Score("u", 0.0))], now=NOW)
    store.scores.save(configs[1].id, [(first, Score("t", 2.0))], now=NOW)
    pks = {trace.id: pk for pk, trace in zip((1, 2), store.traces.load([1, 2]), strict=True)}
    assert store.scores.evidence(configs[0].id, [1, 2]) == {pks["t"]: pieces, pks["u"]: ()}
    assert store.scores.evidence(configs[1].id, [1, 2]) == {pks["t"]: ()}

"""Samples topped up and merged: the same as one draw, and the same as the formula."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.stats.choosing import policy
from calibrate.stats.sampling.designs import Cut, allocate
from calibrate.types import Label, Record, Score, TopUp, Trace, TraceFilter
from calibrate.workflow.evidence import basis, loading
from calibrate.workflow.sampling import sample as step
from calibrate.workflow.sampling.topup import top_up
from calibrate.workflow.tuning import operating_points
from db import Store, open_store
from tests.workflow.making import DETECTOR, NOW, fill, give_scores
from tests.workflow.sampling.test_sample import evenly_drawn, scored, take

DESIGNS = ["random", "stratified", "octave", "uncertain", "fresh-flagged"]


def drawn_by(store: Store, design: str, size: int, *, seed: int = 1, name: str = "w", at: float = -0.3) -> None:
    config = store.scores.configs(DETECTOR)[0]
    cut = Cut(config.id, at) if design in ("uncertain", "fresh-flagged") else None
    by = "model" if design == "stratified" else None
    take(store, name, design=design, cut=cut, by=by, size=size, seed=seed, fresh=True)


@pytest.mark.both_databases
@pytest.mark.parametrize("design", DESIGNS)
def test_a_top_up_keeps_what_there_is_and_repeats_nobody(store: Store, design: str) -> None:
    scored(store)
    drawn_by(store, design, 25)
    before = store.samples.get("w")
    assert before is not None
    old = [member.trace_pk for member in store.samples.members(before.id)]
    for pk in old[:10]:
        store.labels.add(pk, Label("", "ann", "clean"), sample_id=before.id, now=NOW)
    after = top_up(store, "w", more=15, seed=5, now=NOW)
    members = store.samples.members(after.id)
    assert [member.trace_pk for member in members[:25]] == old
    assert after.size == len(members) == len({member.trace_pk for member in members}) == 40
    assert {name: size for name, (size, _) in after.strata.items()} == {
        n: size for n, (size, _) in before.strata.items()
    }
    counted = Counter(member.stratum for member in members)
    for name, (population, n) in after.strata.items():
        assert counted[name] == n
        assert all(m.inclusion_probability == n / population for m in members if m.stratum == name)
    assert after.options.top_ups == (TopUp(15, 5, NOW),)


def test_later_traces_labels_and_scores_take_no_part(store: Store) -> None:
    config, other, _ = scored(store, 200)
    drawn_by(store, "octave", 30)
    drawn_by(store, "fresh-flagged", 8, name="f")
    new = [f"new {i}" for i in range(50)]
    traces = [Trace(name, answer=name, timestamp=NOW, model="a") for name in new]
    store.traces.add([Record(i, trace) for i, trace in enumerate(traces)], labels_as=None, now=NOW)
    store.scores.save(config.id, [(t.content_hash(), Score(t.id, -9.0)) for t in traces], now=NOW + timedelta(days=1))
    # And the traces that had no score get one, a week later.
    late = [t for t in store.traces.load(range(1, 201)) if int(t.id[1:]) % 10 == 9]
    store.scores.save(config.id, [(t.content_hash(), Score(t.id, -9.0)) for t in late], now=NOW + timedelta(days=7))
    for pk in range(1, 150):
        store.labels.add(pk, Label("", "ann", "clean"), sample_id=None, now=NOW)
    for name in ("f", "w"):
        sample = top_up(store, name, more=10_000, seed=2, now=NOW)
        assert sample.size == sample.pool
        assert max(member.trace_pk for member in store.samples.members(sample.id)) <= 200
        with pytest.raises(BadInput, match="there are no more"):
            top_up(store, name, more=1, seed=2, now=NOW)
    assert other.id != config.id


@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 5_000), min_size=1, max_size=9),
    st.integers(1, 400),
    st.integers(1, 400),
)
def test_labels_in_two_helpings_are_allocated_as_in_one(populations: dict[str, int], first: int, more: int) -> None:
    total = sum(populations.values())
    given_first = allocate(populations, first)
    both = allocate(populations, first + more, given=given_first)
    assert sum(both.values()) == min(total, first + more)
    assert all(given_first[name] <= both[name] <= populations[name] for name in populations)
    at_once = allocate(populations, first + more)
    # Nothing is taken back, so rounding may put a label elsewhere; no stratum is further off than that.
    assert all(abs(both[name] - at_once[name]) <= 1 for name in populations)


def test_topped_up_is_as_drawn_at_once() -> None:
    """How often each trace is in the first 30 after 18 + 12, against its chance in one draw of 30."""
    light = open_store("sqlite://")
    scored(light, 80)
    rounds, hits = 50, Counter[int]()
    for seed in range(rounds):
        drawn_by(light, "octave", 18, seed=seed, name=f"{seed}")
        sample = top_up(light, f"{seed}", more=12, seed=seed + 10_000, now=NOW)
        hits.update(member.trace_pk for member in light.samples.members(sample.id))
    drawn_by(light, "octave", 30, name="at once")
    once = light.samples.get("at once")
    assert once is not None
    assert sample.strata == once.strata
    drawn_by(light, "octave", 80, name="all")
    every = light.samples.get("all")
    assert every is not None
    evenly_drawn(light, every, once, hits, rounds)


def test_what_cannot_be_topped_up_is_a_sentence(store: Store) -> None:
    config, _, _ = scored(store)
    drawn_by(store, "octave", 40)
    with pytest.raises(BadInput, match="there is no sample 'x'"):
        top_up(store, "x", more=5, seed=1, now=NOW)
    with pytest.raises(BadInput, match="ask for at least 1"):
        top_up(store, "w", more=0, seed=1, now=NOW)
    # Scores were replaced behind its back: at the moment it was drawn it could not have seen these.
    traces = store.traces.load(range(1, 301))
    give_scores(store, traces, [float(i % 7) for i in range(300)])
    with pytest.raises(BadInput, match="can no longer be topped up: its stratum"):
        top_up(store, "w", more=5, seed=1, now=NOW)
    size = store.samples.get("w")
    assert size is not None
    assert size.size == 40
    assert config.id


@pytest.mark.both_databases
def test_a_sample_that_somebody_topped_up_meanwhile_is_left_alone(store: Store) -> None:
    scored(store)
    drawn_by(store, "octave", 40)
    stale = store.samples.get("w")
    assert stale is not None
    top_up(store, "w", more=5, seed=1, now=NOW)
    with pytest.raises(BadInput, match="in this moment"):
        store.samples.extend(stale, [], strata=stale.strata, options=stale.options)
    assert len(store.samples.members(stale.id)) == 45


def test_the_sample_of_a_certificate_keeps_its_size(store: Store) -> None:
    config, _, _ = scored(store)
    drawn_by(store, "fresh-flagged", 8)
    sample = store.samples.get("w")
    assert sample is not None
    one = store.certifications.start(DETECTOR, config_id=config.id, sample_id=None, plan={}, by="ann", now=NOW)
    store.certifications.set_fresh_sample(one.id, sample.id)
    with pytest.raises(BadInput, match="whose size its plan fixed"):
        top_up(store, "w", more=5, seed=1, now=NOW)


def weeks(store: Store) -> None:
    """Two samples of separate weeks, labelled, one by model and one at random."""
    rng = np.random.default_rng(8)
    fill(store, [bool(b) for b in rng.random(300) < 0.4], [round(float(x), 1) for x in rng.normal(0, 1, 300)])
    late = TraceFilter(since=NOW - timedelta(hours=119), undated=False)
    early = TraceFilter(until=late.since, undated=False)
    step.draw(store, "W47", size=40, design="stratified", by="model", where=late, seed=1, now=NOW)
    step.draw(store, "W46", size=30, design="random", where=early, seed=2, now=NOW)


def test_merged_figures_are_the_formulas(store: Store) -> None:
    weeks(store)
    data = loading.load_evidence(store, DETECTOR, sample=["W46", "W47"])
    assert data.sample is not None
    assert (data.sample.name, data.sample.size, data.sample.pool) == ("W46 + W47", 70, 300)
    assert [(part.name, set(part.strata)) for part in data.sample.parts] == [("W46", {"all"}), ("W47", {"a", "b"})]
    # By hand: each label stands for the traffic of its own stratum in its own week.
    tp = fp = fn = 0.0
    for name in ("W46", "W47"):
        sample = store.samples.get(name)
        assert sample is not None
        chance = {member.trace_pk: member.inclusion_probability for member in store.samples.members(sample.id)}
        for row in loading.load_evidence(store, DETECTOR, sample=name).rows:
            weight, flagged = 1 / chance[row.pk], row.value is not None and row.value <= 0.0
            tp += weight * (flagged and row.gold == "hallucinated")
            fp += weight * (flagged and row.gold == "clean")
            fn += weight * (not flagged and row.gold == "hallucinated")
    at = data.sweep.point(data.sweep.at(0.0))
    assert at.precision[0] == pytest.approx(tp / (tp + fp))
    assert at.recall[0] == pytest.approx(tp / (tp + fn))
    point = operating_points.choose_point(data, policy.Policy("manual", 0.0))
    operating_points.save_point(store, data, point, by="ann", now=NOW)
    assert store.points.latest()[DETECTOR].data.samples == ("W46", "W47")


def test_samples_that_cannot_be_merged_say_why(store: Store) -> None:
    weeks(store)
    config = store.scores.configs(DETECTOR)[0]
    both = TraceFilter(since=NOW - timedelta(hours=130), undated=False)
    step.draw(store, "f", size=10, design="fresh-flagged", where=both, seed=1, now=NOW, cut=Cut(config.id, 0.0))
    with pytest.raises(BadInput, match="'f' holds flagged traces only"):
        loading.load_evidence(store, DETECTOR, sample=["W46", "f"])
    with pytest.raises(BadInput, match="there is no sample 'W48'"):
        loading.load_evidence(store, DETECTOR, sample=["W46", "W48"])
    assert basis.resolve_sample(store, ["W46", "W46"]) == store.samples.get("W46")
    assert basis.resolve_sample(store, []) is None


def overlapping(store: Store, sizes: tuple[int, int]) -> TraceFilter:
    """Two samples whose windows share 100 of 250 traces; the window of both."""
    weeks(store)
    first = TraceFilter(since=NOW - timedelta(hours=249), until=NOW - timedelta(hours=99), undated=False)
    second = TraceFilter(since=NOW - timedelta(hours=199), undated=False)
    step.draw(store, "one", size=sizes[0], design="stratified", by="model", where=first, seed=1, now=NOW)
    step.draw(store, "two", size=sizes[1], design="random", where=second, seed=2, now=NOW)
    return TraceFilter(since=first.since, undated=False)


def test_all_of_two_windows_that_overlap_is_the_truth_of_both(store: Store) -> None:
    where = overlapping(store, (1000, 1000))
    truth = [
        row for row in loading.load_evidence(store, DETECTOR).rows if row.timestamp and row.timestamp >= where.since
    ]
    data = loading.load_evidence(store, DETECTOR, sample=["one", "two"])
    assert (len(truth), len(data.rows)) == (250, 250)  # a trace that both drew is one label
    curve = data.sweep
    at = curve.point(curve.at(0.0))
    flagged = [row for row in truth if row.value is not None and row.value <= 0.0]
    hits = sum(row.gold == "hallucinated" for row in flagged)
    assert curve.weighted_n == pytest.approx(250)
    assert curve.prevalence == pytest.approx(sum(row.gold == "hallucinated" for row in truth) / 250)
    assert at.precision[0] == pytest.approx(hits / len(flagged))


def test_a_part_of_two_windows_that_overlap_counts_each_trace_once(store: Store) -> None:
    overlapping(store, (60, 50))
    data = loading.load_evidence(store, DETECTOR, sample=["one", "two"])
    assert data.sample is not None
    names = {part.id: part.name for part in data.sample.parts}
    chances = {(p.id, name): n / size for p in data.sample.parts for name, (size, n) in p.strata.items()}
    inside = (NOW - timedelta(hours=199), NOW - timedelta(hours=99))
    total = flags = 0.0
    assert len({row.pk for row in data.rows}) == len(data.rows)
    for row in data.rows:
        assert row.timestamp is not None
        both = inside[0] <= row.timestamp < inside[1]
        weight = 0.0
        for drawn in row.strata:
            assert drawn.share == pytest.approx({"one": 60, "two": 50}[names[drawn.sample]] / 110 if both else 1)
            weight += 1 / chances[drawn.sample, drawn.name] * drawn.share
        total += weight
        flags += weight * (row.value is not None and row.value <= 0.0)
    assert data.sweep.point(data.sweep.at(0.0)).flag_rate[0] == pytest.approx(flags / total, rel=0.02)


@pytest.mark.both_databases
def test_a_small_sample_does_not_spoil_a_large_one(store: Store) -> None:
    """All of a window, and six traces of it drawn again: to speak for half of it they would be off by 20 points."""
    weeks(store)
    where = TraceFilter(since=NOW - timedelta(hours=199), undated=False)
    step.draw(store, "all", size=1000, design="random", where=where, seed=1, now=NOW)
    step.draw(store, "few", size=6, design="random", where=where, seed=3, now=NOW)
    whole, merged = (loading.load_evidence(store, DETECTOR, sample=names).sweep for names in (["all"], ["all", "few"]))
    assert merged.weighted_n == pytest.approx(whole.weighted_n, rel=0.01)  # strata hold whole traces
    assert merged.auroc == pytest.approx(whole.auroc, abs=0.02)
    assert merged.prevalence == pytest.approx(whole.prevalence, abs=0.02)


def test_samples_of_separate_models_do_not_overlap(store: Store) -> None:
    weeks(store)
    for model in ("a", "b"):
        where = TraceFilter(models=(model,))
        step.draw(store, model, size=20, design="random", where=where, seed=1, now=NOW)
    merged = basis.resolve_sample(store, ["a", "b"])
    assert merged is not None
    assert [part.strata for part in merged.parts] == [{"all": (200, 20)}, {"all": (100, 20)}]

"""Which labels stand for a sample's traffic: those of the unbroken prefix of its queue, however other labels came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.types import Label, Sample, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.evidence.score_matrix import load_score_matrix
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.sampling.sizing import last_prevalence
from calibrate.workflow.upgrade import models_seen
from calibrate.workflow.week.week import week
from db import Store, open_store
from tests.workflow.making import ABOVE, DETECTOR, NOW, fill, give_scores

ALL = TraceFilter()
TRAFFIC, PREVALENCE = 1200, 0.12


def hallucinations(n: int = TRAFFIC) -> list[bool]:
    return [bool(one) for one in np.random.default_rng(5).random(n) < PREVALENCE]


def prevalence_of(store: Store, sample: Sample) -> float | None:
    return estimate_prevalence(store, sample).share.value


@pytest.fixture
def traffic(store: Store) -> tuple[Store, list[bool]]:
    """Traffic that nobody has labelled, scored by two detectors."""
    return store, fill_traffic(store)


def fill_traffic(store: Store) -> list[bool]:
    bad = hallucinations()
    rng = np.random.default_rng(6)
    scores = [round(float(rng.normal(0.4 if each else 0.6, 0.15)), 3) for each in bad]
    fill(store, [None] * len(bad), scores)
    traces = store.traces.load([pk for chunk in store.traces.keys(ALL) for pk, _ in chunk])
    give_scores(store, traces, [round(float(rng.normal(each, 1)), 3) for each in bad], name=ABOVE)
    return bad


def draw(store: Store, name: str = "w", *, size: int = 200, seed: int = 1, design: str = "octave") -> Sample:
    return sampling.draw(store, name, size=size, design=design, where=ALL, seed=seed, now=NOW)


def say(store: Store, pks: Sequence[int], bad: Sequence[bool], *, by: str = "ann", unsure: Sequence[int] = ()) -> None:
    """The truth about these traces, but for some that are unsure."""
    for pk in pks:
        verdict = "unsure" if pk in unsure else "hallucinated" if bad[pk - 1] else "clean"
        store.labels.add(pk, Label("", by, verdict), sample_id=None, now=NOW)


def complain(store: Store, bad: Sequence[bool], n: int = 80) -> None:
    """Import complaints: nearly all of them are hallucinated, and some are members of samples."""
    guilty = [f"t{place}" for place, each in enumerate(bad) if each][: n - 3]
    clean = [f"t{place}" for place, each in enumerate(bad) if not each][:3]
    labels = [Label(trace, "support", "hallucinated") for trace in guilty]
    store.labels.add_many([*labels, *(Label(trace, "support", "clean") for trace in clean)], now=NOW)


def keys_of(store: Store, sample: Sample) -> list[int]:
    return [member.trace_pk for member in store.samples.members(sample.id)]


def share_of(store: Store, sample: Sample) -> float | None:
    return estimate_prevalence(store, sample).share.value


def test_complaints_do_not_speak_for_a_sample_that_nobody_has_labelled(traffic: tuple[Store, list[bool]]) -> None:
    store, bad = traffic
    sample = draw(store)
    complain(store, bad)
    inside = store.labels.gold_counts(sample.id)
    assert inside["hallucinated"] > 10  # they are there, and describe nothing
    data = loading.load_evidence(store, DETECTOR, sample="w")
    counted = len(data.rows)
    assert counted < 3
    assert data.waiting == sum(inside.values()) - counted
    assert last_prevalence(store) is None
    assert (share_of(store, sample) or 0.0) in (0.0, 1.0) if counted else share_of(store, sample) is None
    matrix = load_score_matrix(store, sample="w")
    assert (len(matrix.rows), matrix.waiting) == (counted, data.waiting)


def test_complaints_do_not_move_the_figures_of_a_sample_half_labelled(traffic: tuple[Store, list[bool]]) -> None:
    store, bad = traffic
    sample = draw(store)
    members = keys_of(store, sample)
    say(store, members[:100], bad)
    before = figures_of(store, sample)
    outside = [place for place in range(len(bad)) if place + 1 not in members[100:101]]
    guilty = [f"t{place}" for place in outside if bad[place]][:80]
    store.labels.add_many([Label(trace, "support", "hallucinated") for trace in guilty], now=NOW)
    assert figures_of(store, sample) == before


def figures_of(store: Store, sample: Sample) -> tuple[object, ...]:
    """Every figure of the traffic that a sample gives."""
    data = loading.load_evidence(store, DETECTOR, sample=sample.name)
    curve, matrix = data.sweep, load_score_matrix(store, sample=sample.name)
    seen = models_seen.registry(store, sample=sample.name)
    state = week(store, name=sample.name, labeller="ann", now=NOW)
    return (
        curve.n,
        curve.prevalence,
        curve.auroc,
        curve.average_precision,
        list(curve.flag_rate),
        matrix.weights.tolist(),
        [(value.name, value.labels, value.prevalence) for value in seen.values],
        share_of(store, sample),
        state.at_hand.prevalence.share.value,
    )


PLACES = st.sets(st.integers(0, 39), max_size=40)


@settings(max_examples=10, deadline=None)
@given(first=st.integers(1, 30), later=PLACES, unsure=PLACES)
def test_labels_behind_the_first_gap_change_nothing(first: int, later: set[int], unsure: set[int]) -> None:
    store = open_store("sqlite://")
    bad = fill_small(store)
    sample = draw(store, size=40, design="random")
    members = keys_of(store, sample)
    doubtful = [members[place] for place in unsure]
    say(store, members[:first], bad, unsure=doubtful)
    before = loading.load_evidence(store, DETECTOR, sample="w")
    assert (len(before.rows) + len(before.undecided), before.waiting) == (first, 0)
    say(store, [members[place] for place in later if place > first], bad, unsure=doubtful)
    after = loading.load_evidence(store, DETECTOR, sample="w")
    assert (after.rows, after.undecided) == (before.rows, before.undecided)
    assert after.waiting == sum(place > first for place in later)


def fill_small(store: Store) -> list[bool]:
    bad = [place % 4 == 0 for place in range(80)]
    fill(store, [None] * 80, [place / 80 for place in range(80)])
    return bad


def test_a_trace_that_was_skipped_holds_back_what_comes_after_it(traffic: tuple[Store, list[bool]]) -> None:
    """Somebody skips what looks bad and leaves: only what came before the first skip counts."""
    store, bad = traffic
    sample = draw(store, design="random", size=100)
    members = keys_of(store, sample)
    for pk in members:
        if bad[pk - 1]:
            store.labels.skip(pk, sample_id=sample.id, labeller="ann", now=NOW)
        else:
            say(store, [pk], bad)
    first_skip = next(place for place, pk in enumerate(members) if bad[pk - 1])
    data = loading.load_evidence(store, DETECTOR, sample="w")
    assert len(data.rows) == first_skip
    assert data.waiting == sum(not bad[pk - 1] for pk in members[first_skip:])


def test_unsure_and_disputed_members_hold_their_place_and_are_in_no_figure(traffic: tuple[Store, list[bool]]) -> None:
    """With unsure on half of what is hallucinated, weights are still those of the draw: they sum to the traffic that
    was decided."""
    store, bad = traffic
    sample = draw(store)
    members = keys_of(store, sample)
    guilty = [pk for pk in members if bad[pk - 1]]
    say(store, members, bad, unsure=guilty[::2])
    disputed = next(pk for pk in members if not bad[pk - 1])
    store.labels.add(disputed, Label("", "ben", "hallucinated"), sample_id=None, now=NOW)
    data = loading.load_evidence(store, DETECTOR, sample="w")
    assert {row.gold for row in data.undecided} == {"unsure", "disputed"}
    assert len(data.undecided) == len(guilty[::2]) + 1
    strata = {member.trace_pk: member.stratum for member in store.samples.members(sample.id)}
    weight = {name: population / n for name, (population, n) in sample.strata.items()}
    assert data.design is not None
    for row, own in zip(data.rows, data.design.weights, strict=True):
        # Rounded to whole traces a stratum.
        assert own == pytest.approx(weight[strata[row.pk]], rel=0.1)
    expected = sum(weight[strata[pk]] for pk in guilty[1::2]) / sum(weight[strata[row.pk]] for row in data.rows)
    assert share_of(store, sample) == pytest.approx(expected)


def test_each_of_several_samples_counts_its_own_prefix(traffic: tuple[Store, list[bool]]) -> None:
    store, bad = traffic
    first, second = (
        sampling.draw(store, name, size=60, design="random", where=where, seed=3, now=NOW)
        for name, where in (
            ("v", TraceFilter(until=NOW - timedelta(hours=600))),
            ("w", TraceFilter(since=NOW - timedelta(hours=600))),
        )
    )
    say(store, keys_of(store, first)[:20], bad)
    say(store, keys_of(store, first)[30:50], bad)
    say(store, keys_of(store, second)[1:], bad)
    merged = loading.load_evidence(store, DETECTOR, sample=["v", "w"])
    assert [row.pk for row in merged.rows] == keys_of(store, first)[:20]
    assert merged.waiting == 20 + 59
    say(store, keys_of(store, second)[:1], bad)
    merged = loading.load_evidence(store, DETECTOR, sample=["v", "w"])
    assert (len(merged.rows), merged.waiting) == (80, 20)


def test_the_prevalence_stays_right_whoever_labels_out_of_order() -> None:
    """Somebody works through the queue, and somebody else picks what looks bad, in samples of 40 windows."""
    store = open_store("sqlite://")
    bad = hallucinations(2400)
    fill(store, [None] * len(bad), [0.5] * len(bad))
    errors = []
    for number in range(40):
        window = slice(60 * number, 60 * number + 60)
        newest, oldest = (NOW - timedelta(hours=hours) for hours in (window.start, window.stop - 1))
        where = TraceFilter(since=oldest, until=newest + timedelta(minutes=1))
        sample = sampling.draw(store, f"{number}", size=50, design="random", where=where, seed=number, now=NOW)
        members = keys_of(store, sample)
        say(store, members[:30], bad)
        say(store, [pk for pk in members[31:] if bad[pk - 1]], bad, by="eve")
        share = share_of(store, sample)
        assert share is not None
        errors.append(share - float(np.mean(bad[window])))
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))

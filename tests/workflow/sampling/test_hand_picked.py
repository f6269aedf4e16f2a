"""Traces that somebody picks, and labels given outside a sample, change no figure of the traffic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from calibrate.errors import BadInput
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.types import Label, Record, Sample, Score, Trace, TraceFilter, Verdict
from calibrate.workflow.evidence.basis import EVERY_LABEL, is_census
from calibrate.workflow.evidence.labels_at_hand import labels_at_hand
from calibrate.workflow.evidence.loading import load_evidence
from calibrate.workflow.sampling import hand_picked, sample
from calibrate.workflow.traces.stated_samples import state_again
from calibrate.workflow.tuning.operating_points import choose_point
from calibrate.workflow.week.week import week
from db import Store

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def fill(store: Store) -> Sample:
    """100 traces with scores; a random sample of 40, of which every fourth is hallucinated."""
    traces = [Trace(f"t{n}", f"Answer {n}.", timestamp=NOW - timedelta(minutes=n)) for n in range(100)]
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    config = store.scores.config("rouge_l", "1", {}, "", now=NOW)
    pairs = [(trace.content_hash(), Score(trace.id, (n * 37 % 100) / 100)) for n, trace in enumerate(traces)]
    store.scores.save(config.id, pairs, now=NOW)
    drawn = sample.draw(store, "w47", size=40, design="random", where=TraceFilter(), seed=1, now=NOW)
    for place, line in enumerate(store.samples.lines(drawn.id)):
        verdict: Verdict = "clean" if place % 4 else "hallucinated"
        label = Label(line.trace_id, "ann", verdict)
        store.labels.add(store.traces.find(line.trace_id) or 0, label, sample_id=drawn.id, now=NOW)
    return drawn


def outsiders(store: Store, drawn: Sample) -> list[int]:
    inside = {member.trace_pk for member in store.samples.members(drawn.id)}
    return [pk for pk in range(1, 101) if pk not in inside]


@pytest.mark.both_databases
def test_picked_traces_are_a_sample_that_grows(store: Store) -> None:
    fill(store)
    made, is_new = hand_picked.pick(store, 3, "to discuss", now=NOW)
    assert is_new
    hand_picked.pick(store, 9, "to discuss", now=NOW)
    grown, is_new = hand_picked.pick(store, 3, " to discuss ", now=NOW)
    assert not is_new
    assert [member.trace_pk for member in store.samples.members(grown.id)] == [3, 9]
    assert (grown.id, grown.size, grown.strata) == (made.id, 2, {"picked": (2, 2)})
    assert [each.name for each in hand_picked.hand_picked(store)] == ["to discuss"]


def test_they_never_speak_for_traffic(store: Store) -> None:
    drawn = fill(store)
    picked, _ = hand_picked.pick(store, outsiders(store, drawn)[0], "to discuss", now=NOW)
    assert not speaks_for_all(picked)
    for design in ("random", "flagged", "unknown"):
        with pytest.raises(BadInput, match="picked by hand"):
            state_again(store, picked, design=design, now=NOW)


def test_a_drawn_sample_takes_no_trace_by_hand(store: Store) -> None:
    drawn = fill(store)
    with pytest.raises(BadInput, match="would spoil"):
        hand_picked.pick(store, outsiders(store, drawn)[0], "w47", now=NOW)
    assert store.samples.get("w47") == drawn
    for name in ("", " \n"):
        with pytest.raises(BadInput, match="needs a name"):
            hand_picked.pick(store, 1, name, now=NOW)


@pytest.mark.both_databases
def test_labels_outside_a_sample_change_no_figure_of_it(store: Store) -> None:
    """Thirty hallucinated answers, looked for by their scores: the sample's figures stay, and the labels together are
    refused as a picture of the traffic."""
    drawn = fill(store)
    before = load_evidence(store, "rouge_l", sample="w47")
    counted = labels_at_hand(store, drawn)
    point = choose_point(before, parse("precision>=0.2"))
    hand_picked.pick(store, outsiders(store, drawn)[0], "to discuss", now=NOW)
    for pk in outsiders(store, drawn)[:30]:
        (trace,) = store.traces.load([pk])
        store.labels.add(pk, Label(trace.id, "tester", "hallucinated"), sample_id=None, now=NOW)
    after = load_evidence(store, "rouge_l", sample="w47")
    assert after.digest() == before.digest()
    assert labels_at_hand(store, drawn) == counted
    assert choose_point(after, parse("precision>=0.2")) == point
    assert load_evidence(store, "rouge_l").digest() == before.digest()
    for data in (
        load_evidence(store, "rouge_l", basis=EVERY_LABEL),
        load_evidence(store, "rouge_l", sample="to discuss"),
    ):
        with pytest.raises(BadInput):
            choose_point(data, parse("precision>=0.2"))


def test_picking_takes_no_census_away_and_is_no_work_of_the_week(store: Store) -> None:
    """Where every trace has a label, all labels describe the traffic, whatever list a trace is on."""
    drawn = fill(store)
    for pk in outsiders(store, drawn):
        (trace,) = store.traces.load([pk])
        store.labels.add(pk, Label(trace.id, "ann", "clean"), sample_id=None, now=NOW)
    before = week(store, name="2026-W47", labeller="ben", now=NOW)
    assert is_census(store)
    hand_picked.pick(store, 3, "to discuss", now=NOW)
    assert is_census(store)
    after = week(store, name="2026-W47", labeller="ben", now=NOW)
    assert (after.aside, after.steps) == (before.aside, before.steps)

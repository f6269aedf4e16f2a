"""A sample, a stratum or a model may be called anything: no figure depends on names, and every name is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest import Record
from calibrate.stats.choosing.policy import Policy
from calibrate.thresholds import Data
from calibrate.types import Label, Member, Trace, TraceFilter, merged_name
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.tuning import operating_points
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, draw, fill, give_scores, keep_old_point

PIECES = (
    " ⊕ ",
    " ×",
    " + ",
    ": ",
    "×0.5",
    "+",
    ":",
    "\n",
    "\r\n",
    '"',
    "'",
    "\u200f",
    "\u202e",
    "\\",
    ", ",
    "a",
    "b",
    "0.5",
    " ",
)
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
PAIRS = st.lists(NAMES, min_size=2, max_size=2, unique=True)
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WINDOWS = ((0, 39), (20, 59))  # of the 60 traces, hours back; they share 20
DRAWN = (range(0, 40, 2), range(21, 60, 3))


def keep(store: Store, names: Sequence[str], strata: Sequence[str]) -> None:
    """Two samples whose windows overlap, each of two strata."""
    for name, (newest, oldest), hours in zip(names, WINDOWS, DRAWN, strict=True):
        stratum_of = {hour: strata[hour % 4 // 2] for hour in hours}
        drawn = {stratum: sum(each == stratum for each in stratum_of.values()) for stratum in strata}
        members = []
        for hour in hours:
            pk = store.traces.find(f"t{hour}")
            assert pk is not None
            members.append(Member(pk, drawn[stratum_of[hour]] / 20, stratum_of[hour]))
        store.samples.add(
            name,
            design="stratified",
            by=strata[0],
            seed=1,
            pool=40,
            undated=0,
            where=TraceFilter(since=NOW - timedelta(hours=oldest), until=NOW - timedelta(hours=newest - 1)),
            strata={stratum: (20, drawn[stratum]) for stratum in strata},
            members=members,
            now=NOW,
        )


@pytest.fixture
def traces(store: Store) -> Store:
    labels, scores = draw()
    fill(store, labels, scores)
    return store


@SLOW
@given(names=PAIRS, strata=PAIRS)
def test_figures_of_merged_samples_do_not_depend_on_names(traces: Store, names: list[str], strata: list[str]) -> None:
    assume(not any(traces.samples.get(name) for name in names))
    if traces.samples.get("first") is None:
        keep(traces, ("first", "second"), ("x", "y"))
    keep(traces, names, strata)
    plain = loading.load_evidence(traces, DETECTOR, sample=("first", "second"))
    data = loading.load_evidence(traces, DETECTOR, sample=names)
    assert plain.design is not None
    assert data.design is not None
    assert [row.pk for row in data.rows] == [row.pk for row in plain.rows]
    assert np.allclose(data.design.weights, plain.design.weights)
    assert sorted(data.design.population) == sorted(plain.design.population)
    assert (data.sweep.prevalence, data.sweep.weighted_n) == pytest.approx(
        (plain.sweep.prevalence, plain.sweep.weighted_n)
    )


@SLOW
@given(names=PAIRS, strata=PAIRS)
def test_a_point_and_a_release_name_the_samples_they_were_chosen_on(
    traces: Store, names: list[str], strata: list[str]
) -> None:
    assume(not any(traces.samples.get(name) for name in names))
    keep(traces, names, strata)
    data = loading.load_evidence(traces, DETECTOR, sample=names)
    point = operating_points.choose_point(data, Policy("manual", 0.5))
    operating_points.save_point(traces, data, point, by="ann", now=NOW)
    assert traces.points.latest()[DETECTOR].data.samples == tuple(names)
    file = build_candidate(traces, ReleaseRequest(by="ann"), points=traces.points.latest(), previous=None, now=NOW)
    about = Data.from_json(file.data.to_json())
    assert about.sample == merged_name(names)
    assert sorted(history.sample_names(about)) == sorted(names)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(models=PAIRS)
def test_a_sample_stratified_by_any_model_can_be_merged_and_weighs_its_traffic(store: Store, models: list[str]) -> None:
    """The sum of the weights is the traffic, whatever the strata are called."""
    began = store.traces.count(TraceFilter())
    records = []
    for place in range(40):
        model, when = models[place % 4 == 0], NOW - timedelta(days=began, hours=place)
        trace = Trace(f"t{began + place}", answer=f"answer {began + place}", model=model, timestamp=when)
        records.append(Record(place + 1, trace, (Label(trace.id, "", "hallucinated" if place % 3 else "clean"),)))
    store.traces.add(records, labels_as="gold", now=NOW)
    give_scores(store, [record.trace for record in records], [place / 40 for place in range(40)])
    windows = [(0, 30), (20, 39)]
    for name, (newest, oldest) in zip("vw", windows, strict=True):
        at = NOW - timedelta(days=began)
        where = TraceFilter(since=at - timedelta(hours=oldest), until=at - timedelta(hours=newest - 1), undated=False)
        sampling.draw(store, f"{name}{began}", size=100, design="stratified", by="model", where=where, seed=1, now=NOW)
    data = loading.load_evidence(store, DETECTOR, sample=[f"v{began}", f"w{began}"])
    assert len(data.rows) == 40
    assert data.design is not None
    assert data.design.weights.sum() == pytest.approx(40)


def test_a_point_saved_before_lists_were_kept_names_its_samples(traces: Store) -> None:
    keep(traces, ("W46", "W47"), ("x", "y"))
    data = loading.load_evidence(traces, DETECTOR, sample=("W46", "W47"))
    point = operating_points.choose_point(data, Policy("manual", 0.5))
    operating_points.save_point(traces, data, point, by="ann", now=NOW)
    saved = traces.points.latest()[DETECTOR]
    document = saved.data.to_json()
    del document["samples"]
    figures = asdict(saved.point)
    for text, names in (("W46 + W47", ("W46", "W47")), ("W46", ("W46",)), (None, ())):
        keep_old_point(traces, saved, point=figures, data={**document, "sample": text})
        assert traces.points.latest()[DETECTOR].data.samples == names
    keep(traces, ("W46 + W47", "W48"), ("x", "y"))
    keep_old_point(traces, saved, point=figures, data={**document, "sample": "W46 + W47"})
    assert traces.points.latest()[DETECTOR].data.samples == ("W46 + W47",)


def test_a_file_that_lists_no_samples_is_split() -> None:
    old = Data("W46 + W47", "merged", "0" * 32, 10, 5)
    assert history.sample_names(old) == ["W46", "W47"]
    assert history.sample_names(Data("W46 + W47", "octave", "0" * 32, 10, 5)) == ["W46 + W47"]
    assert history.sample_names(Data(None, None, "0" * 32, 10, 5)) == []


def test_an_unknown_sample_is_refused_by_its_whole_name(traces: Store) -> None:
    keep(traces, ("W46", "W47"), ("x", "y"))
    with pytest.raises(BadInput, match=r"no sample 'W46 \+ W47'"):
        loading.load_evidence(traces, DETECTOR, sample="W46 + W47")

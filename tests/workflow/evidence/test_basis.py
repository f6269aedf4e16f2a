"""What figures stand on where no sample is named, and what labels do that do not describe the traffic."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.stats.choosing.policy import parse
from calibrate.types import Interval, Label, Record, Trace, TraceFilter
from calibrate.workflow.certification import planning
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Caution, Chosen, choose_basis
from calibrate.workflow.labelling import agreement
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.sampling.topup import top_up
from calibrate.workflow.traces.stated_samples import keep_stated
from calibrate.workflow.tuning import compare, operating_points, probability, scoreboard
from calibrate.workflow.tuning.ensemble_data import gather
from calibrate.workflow.upgrade import models_seen
from db import Store
from tests.workflow.evidence.test_which_labels import complain, fill_traffic, keys_of, say, share_of
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores

ALL = TraceFilter()
UNSTATED = Caution(Chosen.UNSTATED)


@pytest.fixture
def traffic(store: Store) -> tuple[Store, list[bool]]:
    return store, fill_traffic(store)


def test_imported_complaints_describe_no_traffic_and_choose_no_threshold(traffic: tuple[Store, list[bool]]) -> None:
    store, bad = traffic
    complain(store, bad)
    assert choose_basis(store, None).caution == UNSTATED
    data = loading.load_evidence(store, DETECTOR)
    assert len(data.rows) == 80  # they can be read
    for policy in ("manual:0.5", "precision>=0.7", "elbow", "alerts<=20/day"):
        with pytest.raises(BadInput, match="nobody has said how the traces with labels were chosen"):
            operating_points.choose_point(data, parse(policy))
    with pytest.raises(BadInput, match="labels import FILE --design"):
        probability.fit(store, DETECTOR)
    with pytest.raises(BadInput, match="describe no traffic"):
        gather(store, [DETECTOR, ABOVE], sample=None)
    with pytest.raises(BadInput, match="describe no traffic"):
        planning.plan(store, data, by="ann", now=NOW)
    seen = models_seen.registry(store)
    assert {value.prevalence for value in seen.values} == {Interval(None)}
    assert seen.caution == UNSTATED


def test_they_serve_second_looks_and_comparison_with_the_caution_beside_it(traffic: tuple[Store, list[bool]]) -> None:
    store, bad = traffic
    say(store, [pk for pk, each in enumerate(bad, 1) if each or pk % 9 == 0], bad)
    board = scoreboard.scoreboard(store)
    assert board.caution == UNSTATED
    assert board.leader is not None
    assert [line.point for line in board.lines if not line.baseline] == [None, None]
    contrast = compare.of_detectors(store, [DETECTOR, ABOVE])
    assert contrast.series[0].auroc.value is not None
    assert agreement.second_look(store).n == board.n


def test_the_verbs_say_so(
    traffic: tuple[Store, list[bool]], capsys: pytest.CaptureFixture[str], store_url: str
) -> None:
    store, bad = traffic
    complain(store, bad)
    at = ("--store", store_url)
    assert main(["choose", DETECTOR, "--policy", "manual:0.5", *at]) == 2
    assert "nobody has said how the traces with labels were chosen" in capsys.readouterr().err
    for verb in (["sweep", DETECTOR], ["scoreboard"], ["compare", DETECTOR, ABOVE], ["seen"]):
        assert main([*verb, *at]) == 0
        assert "Nobody has said how the traces with labels were chosen" in capsys.readouterr().out


def test_every_label_counts_where_every_trace_has_one(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    sampling.draw(store, "w", size=20, design="random", where=ALL, seed=1, now=NOW)
    basis = choose_basis(store, None)
    assert (basis.sample, basis.caution) == (None, None)
    store.labels.add(1, Label("", "ann", "unsure"), sample_id=None, now=NOW)  # a verdict, too
    assert choose_basis(store, None) == basis
    store.traces.add([Record(1, Trace("new", "an answer"))], labels_as=None, now=NOW)
    basis = choose_basis(store, None)
    assert basis.sample is not None
    assert (basis.sample.name, basis.caution) == ("w", None)


def test_all_samples_with_labels_that_count_are_merged(traffic: tuple[Store, list[bool]]) -> None:
    store, bad = traffic
    complain(store, bad)
    samples = {}
    for name, design, seed in (("a", "random", 1), ("b", "octave", 4), ("empty", "random", 3)):
        samples[name] = sampling.draw(store, name, size=40, design=design, where=ALL, seed=seed, now=NOW)
        assert not store.labels.of_trace(keys_of(store, samples[name])[0])  # else that label counts
    assert choose_basis(store, None).caution == UNSTATED
    for name in ("a", "b"):
        say(store, keys_of(store, samples[name])[:25], bad)
    basis = choose_basis(store, None)
    assert basis.sample is not None
    assert basis.sample.names == ("b", "a")
    merged = loading.load_evidence(store, DETECTOR, sample=["b", "a"])
    assert loading.load_evidence(store, DETECTOR).sweep.prevalence == pytest.approx(merged.sweep.prevalence)


@pytest.mark.parametrize("design", ["flagged", "feedback"])
def test_labels_stated_as_chosen_are_read_with_a_caution(traffic: tuple[Store, list[bool]], design: str) -> None:
    store, bad = traffic
    complain(store, bad)
    every = [f"t{place}" for place in range(len(bad))]
    sample = keep_stated(store, "complaints", every, design=design, now=NOW)
    assert (sample.size, sample.pool, sample.design) == (80, 80, design)
    data = loading.load_evidence(store, DETECTOR, sample="complaints")
    assert data.caution == Caution(Chosen(design), "complaints")
    assert (len(data.rows), data.design) == (80, None)
    assert data.sweep.auroc is not None
    assert "no threshold is chosen on them" in str(caution_of(data.caution))
    with pytest.raises(BadInput, match=r"'complaints' holds .* says nothing of what was missed"):
        operating_points.choose_point(data, parse("manual:0.5"))
    sampling.draw(store, "w", size=20, design="random", where=ALL, seed=1, now=NOW)
    with pytest.raises(BadInput, match="'complaints' holds"):
        loading.load_evidence(store, DETECTOR, sample=["complaints", "w"])
    assert choose_basis(store, None).caution == Caution(Chosen(design), "complaints")  # what was stated is believed
    with pytest.raises(BadInput, match="'complaints' holds"):
        operating_points.choose_point(loading.load_evidence(store, DETECTOR), parse("manual:0.5"))
    members = [pk for each in store.samples.list() for pk in keys_of(store, each)]
    say(store, [next(pk for pk in range(1, 200) if pk not in members)], bad)
    assert choose_basis(store, None).caution == UNSTATED
    with pytest.raises(BadInput, match="cannot be topped up"):
        top_up(store, "complaints", more=5, seed=1, now=NOW)


def test_what_was_imported_as_feedback_is_no_census(store: Store) -> None:
    """A store that holds nothing but complaints, each with its label."""
    labels, scores = draw()
    fill(store, labels, scores)
    assert choose_basis(store, None).caution is None
    keep_stated(store, "complaints", [f"t{place}" for place in range(60)], design="feedback", now=NOW)
    assert choose_basis(store, None).caution is not None


def test_labels_stated_as_random_are_a_sample_of_their_window(traffic: tuple[Store, list[bool]]) -> None:
    """Traces are an hour apart: the window goes from the oldest to the newest of those that were labelled."""
    store, bad = traffic
    places = np.random.default_rng(2).choice(np.arange(100, 600), size=150, replace=False).tolist()
    store.labels.add_many(
        [Label(f"t{place}", "ann", "hallucinated" if bad[place] else "clean") for place in places], now=NOW
    )
    ids = [f"t{place}" for place in range(len(bad))] + ["nowhere"]
    sample = keep_stated(store, "audit", ids, design="random", now=NOW)
    window = max(places) - min(places) + 1
    assert (sample.size, sample.pool, sample.strata) == (150, window, {"all": (window, 150)})
    assert sample.filter.since == NOW - timedelta(hours=max(places))
    data = loading.load_evidence(store, DETECTOR)  # it is found without its name
    assert data.sample == sample
    assert data.design is not None
    assert data.design.weights.sum() == pytest.approx(window)
    assert share_of(store, sample) == pytest.approx(np.mean([bad[place] for place in places]))
    assert keep_stated(store, "audit", ids, design="random", now=NOW) == sample  # importing it again adds nothing
    assert keep_stated(store, "audit", ids[:400], design="random", now=NOW).name == "audit 2"
    grown = top_up(store, "audit", more=50, seed=1, now=NOW)
    assert (grown.size, grown.strata) == (200, {"all": (window, 200)})
    assert len(loading.load_evidence(store, DETECTOR, sample="audit").rows) in range(150, 160)


def test_undated_traces_are_a_sample_of_all_traffic(store: Store) -> None:
    records = [
        Record(place, Trace(f"u{place}", f"answer {place}"), (Label(f"u{place}", "", "clean"),) if place < 9 else ())
        for place in range(30)
    ]
    store.traces.add(records, labels_as="gold", now=NOW)
    give_scores(store, [record.trace for record in records], [0.5] * 30)
    sample = keep_stated(store, "audit", [f"u{place}" for place in range(30)], design="random", now=NOW)
    assert (sample.size, sample.pool, sample.undated) == (9, 30, 30)
    with pytest.raises(BadInput, match="none of the traces has a label"):
        keep_stated(store, "none", ["u20"], design="random", now=NOW)
    with pytest.raises(BadInput, match="random, flagged, feedback"):
        keep_stated(store, "none", ["u1"], design="octave", now=NOW)


def test_a_caution_is_in_the_document(store: Store, store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = fill_traffic(store)
    complain(store, bad)
    assert main(["sweep", DETECTOR, "--json", "--store", store_url]) == 0
    assert "Nobody has said" in json.loads(capsys.readouterr().out)["caution"]


def test_labels_that_all_wait_are_said(
    traffic: tuple[Store, list[bool]], capsys: pytest.CaptureFixture[str], store_url: str
) -> None:
    store, bad = traffic
    sample = sampling.draw(store, "w1", size=90, design="octave", where=ALL, seed=1, now=NOW)
    say(store, keys_of(store, sample)[1:81], bad)
    for verb in ("choose", "sweep", "certify"):
        assert main([verb, DETECTOR, "--sample", "w1", "--store", store_url]) == 2
        said = capsys.readouterr().err
        assert "no label counts yet: 80 labels wait behind a trace that nobody has labelled" in said
        assert "Go through the sample in its order" in said

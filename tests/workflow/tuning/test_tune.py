"""Tuning through the store: the same figures as scikit-learn's on the same scores, weights from the sample's design."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, replace
from datetime import timedelta

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from calibrate import registry
from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.report.sentences.tuning import figures
from calibrate.stats.choosing.choose import NotEnoughLabels
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.types import Counted, Label, Record, Score, Trace, TraceFilter
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import loading, traffic
from calibrate.workflow.tuning import operating_points
from db import Store, open_store
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, keep_sample, save


@pytest.mark.parametrize("name", [DETECTOR, ABOVE])
def test_a_sweep_through_the_store_equals_scikit_learn(store: Store, name: str) -> None:
    labels, scores = draw()
    fill(store, labels, scores, name=name)
    data = loading.load_evidence(store, name)
    curve = data.sweep
    there = np.array([score is not None for score in scores])
    y = np.array(labels)
    sign = 1 if name == ABOVE else -1
    oriented = sign * np.array([score for score in scores if score is not None])
    precision, recall, thresholds = precision_recall_curve(y[there], oriented)
    assert_allclose(curve.precision, precision[:-1][::-1], atol=1e-12)
    assert_allclose(curve.recall_scored, recall[:-1][::-1], atol=1e-12)
    assert_allclose(curve.thresholds, sign * thresholds[::-1], atol=1e-12)
    assert curve.auroc == pytest.approx(roc_auc_score(y[there], oriented), abs=1e-9)
    assert curve.average_precision == pytest.approx(average_precision_score(y[there], oriented), abs=1e-9)
    assert curve.coverage == pytest.approx(there.mean())
    assert data.reasons == {"abstained: no context": 6}


def test_a_stratified_sample_weighs_every_label_by_what_it_stands_for(store: Store) -> None:
    labels, scores = draw(ties=False)
    fill(store, labels, scores)
    strata = ["small" if place < 20 else "large" for place in range(60)]
    keep_sample(store, strata, {"small": 40, "large": 4000})
    curve = loading.load_evidence(store, DETECTOR, sample="w47").sweep
    weights = np.where(np.array(strata) == "small", 40 / 20, 4000 / 40)
    there = np.array([score is not None for score in scores])
    oriented = -np.array([score for score in scores if score is not None])
    precision, recall, _ = precision_recall_curve(np.array(labels)[there], oriented, sample_weight=weights[there])
    assert_allclose(curve.precision, precision[:-1][::-1], atol=1e-12)
    assert_allclose(curve.recall_scored, recall[:-1][::-1], atol=1e-12)
    assert curve.prevalence == pytest.approx(np.average(labels, weights=weights))
    assert curve.weighted_n == pytest.approx(4040)


def test_a_sample_speaks_only_of_its_own_members(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    keep_sample(store, ["all"] * 30, {"all": 600})
    rows = loading.load_evidence(store, DETECTOR, sample="w47").rows
    assert [row.trace_id for row in rows] == [f"t{place}" for place in range(30)]
    with pytest.raises(BadInput, match="there is no sample 'w48'; the samples are: 'w47'"):
        loading.load_evidence(store, DETECTOR, sample="w48")


def test_unsure_and_disputed_labels_are_no_gold(store: Store) -> None:
    fill(store, [True, False, None, True, False], [0.1, 0.9, 0.5, 0.2, 0.8])
    for trace_id, verdict in (("t2", "unsure"), ("t3", "clean")):
        pk = store.traces.find(trace_id)
        assert pk is not None
        store.labels.add(pk, Label(trace_id, "bob", verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]
    assert [row.trace_id for row in loading.load_evidence(store, DETECTOR).rows] == ["t0", "t1", "t4"]


def test_flags_are_counted_where_the_traffic_is_scored(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels of those that are hardly suspicious say that nothing is flagged; the window's scores know better."""
    labels, scores = draw(80, ties=False)
    scores[:40] = sorted(scores[:40], key=lambda score: -(score or 0.0))
    scores[:20] = [0.7 + 0.01 * place for place in range(20)]
    config = fill(store, labels, scores)
    keep_sample(store, ["all"] * 20, {"all": 79})  # the newest trace is dated at the end of the window, exclusive
    refused = store.traces.load([store.traces.find("t30") or 0])[0]
    refusal = Score(refused.id, None, "it declines", "refusal")
    store.scores.save(config.id, [(refused.content_hash(), refusal)], now=NOW)
    expected = sum(score is not None and score <= 0.5 for place, score in enumerate(scores) if place not in (0, 30))
    data = loading.load_evidence(store, DETECTOR, sample="w47")
    point = operating_points.choose_point(data, parse("manual:0.5"), pool=traffic.counted_traffic(store, data))
    assert point.counted == Counted(expected, 79)
    assert point.flag_rate_from == "counted"
    theirs = binomtest(expected, 79).proportion_ci(method="wilson")
    assert astuple(point.flag_rate) == pytest.approx((expected / 79, theirs.low, theirs.high))
    by_labels = operating_points.choose_point(data, parse("manual:0.5"))
    assert (by_labels.flag_rate_from, by_labels.counted) == ("labels", None)
    assert by_labels.flag_rate.high is not None
    assert by_labels.flag_rate.high < expected / 79, "what it was taken for"

    asked = ["choose", DETECTOR, "--policy", "manual:0.5", "--sample", "w47", "--json", "--store", store_url]
    assert main(asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counted"] == {"flagged": expected, "traffic": 79}
    assert (document["flag_rate_from"], document["flag_rate"]) == ("counted", asdict(point.flag_rate))
    operating_points.save_point(store, data, point, reason="to count", by="ann", now=NOW)
    assert store.points.latest()[DETECTOR].point == point
    assert f"({expected} of the window's 79 traces)" in figures.sentence(point, None)

    more = [Trace(f"new{place}", f"new answer {place}", timestamp=NOW - timedelta(days=1)) for place in range(10)]
    store.traces.add([Record(place, trace, ()) for place, trace in enumerate(more)], labels_as="gold", now=NOW)
    data = loading.load_evidence(store, DETECTOR, sample="w47")
    assert traffic.counted_traffic(store, data) is None, "a ninth was not run on"


def test_a_chosen_point_is_kept_with_what_it_was_measured_on(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    point = save(store, "precision>=0.7")
    assert point.feasible
    assert point.precision.value is not None
    assert point.precision.value >= 0.7
    flagged = [s is not None and flags(s, point.threshold, "below") for s in scores]
    hits = sum(f and y for f, y in zip(flagged, labels, strict=True))
    assert (point.true_positives, point.false_positives) == (hits, sum(flagged) - hits)
    saved = store.points.latest()[DETECTOR]
    assert saved.point.threshold == point.threshold
    assert (saved.data.n, saved.data.positives) == (60, sum(labels))
    assert saved.data.models == ("a", "b")
    assert saved.data.label_set_digest == loading.load_evidence(store, DETECTOR).digest()


def test_a_policy_that_nothing_meets_says_so_and_gives_the_nearest(store: Store) -> None:
    fill(store, [True, False] * 10, [0.5] * 20)
    point = operating_points.choose_point(loading.load_evidence(store, DETECTOR), Policy("precision", 0.7))
    assert not point.feasible
    assert figures.why(point) == "no threshold reaches a precision of 70%; the best is 50% at 0.5 (20 labels flagged)"
    assert point.threshold == 0.5


@pytest.mark.parametrize(
    ("labels", "scores", "match"),
    [
        ([False] * 4, [0.1] * 4, "of 4 labels 0 are hallucinated"),
        ([True, False], [None, None], "0 have a score"),
        ([None, None], [0.1, 0.2], "of 0 labels"),
    ],
)
def test_labels_that_cannot_choose_say_what_is_missing(
    store: Store, labels: list[bool | None], scores: list[float | None], match: str
) -> None:
    fill(store, labels, scores)
    with pytest.raises(NotEnoughLabels, match=match):
        operating_points.choose_point(loading.load_evidence(store, DETECTOR), parse("elbow"))


def test_a_detector_that_was_never_run_says_how_to(store: Store) -> None:
    fill(store, [True, False], [0.1, 0.9])
    with pytest.raises(BadInput, match="rouge_l has no scores yet: make them first"):
        loading.load_evidence(store, "rouge_l")


def test_the_histogram_holds_every_scored_label_once(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    histogram = loading.load_evidence(store, DETECTOR).histogram
    scored = [y for y, s in zip(labels, scores, strict=True) if s is not None]
    assert (histogram.hallucinated.sum(), histogram.clean.sum()) == (sum(scored), len(scored) - sum(scored))
    assert len(histogram.edges) == len(histogram.clean) + 1 == 41


def test_the_traces_next_to_a_threshold_come_nearest_first(store: Store) -> None:
    fill(store, [True, False, True, False, None], [0.1, 0.2, 0.3, 0.4, 0.31])
    near = loading.load_evidence(store, DETECTOR).nearby(0.3, most=2)
    assert [row.value for row in near.flagged] == [0.3, 0.2]  # the threshold itself flags
    assert [row.value for row in near.passed] == [0.4]


def test_flags_a_day_need_traces_with_a_time(store: Store) -> None:
    assert traffic.traffic_per_day(store, None) is None
    fill(store, [True] * 6, [0.5] * 6)
    assert traffic.traffic_per_day(store, None) == 6  # in five hours: nothing is known of the rest of the day
    fill(store, [True] * 48, [0.5] * 48)  # one an hour, on three dates
    assert traffic.traffic_per_day(store, None) == pytest.approx(24)


def test_days_without_traffic_count_too(store: Store) -> None:
    records = [Record(n, Trace(f"t{n}", "a", timestamp=NOW - timedelta(days=9 * n)), ()) for n in (0, 1)]
    store.traces.add(records, labels_as=None, now=NOW)
    assert traffic.traffic_per_day(store, None) == pytest.approx(1 / 9)


def test_the_shipped_parameters_are_meant_even_when_others_ran_last(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    usual = registry.config_of(registry.make(DETECTOR))
    hashes = [content for _, content in next(store.traces.keys(TraceFilter()))]
    for place, params in enumerate((usual, {**usual, "variant": "plain"})):
        config = store.scores.config(DETECTOR, "1", params, "", now=NOW)
        given = [(content, Score("", 0.5)) for content in hashes]
        store.scores.save(config.id, given, now=NOW + timedelta(hours=place + 1))
    assert [dict(config.params) for config in configurations.configs_by_detector(store)[DETECTOR]][1:] == [
        {**usual, "variant": "plain"},
        usual,
    ]
    assert dict(loading.load_evidence(store, DETECTOR).config.params) == usual


def test_an_elbow_comes_with_how_steady_it_is(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(sqlite_url)
    fill(store, *draw(120))
    found = operating_points.bootstrap_elbow(loading.load_evidence(store, DETECTOR))
    assert found == operating_points.bootstrap_elbow(loading.load_evidence(store, DETECTOR))
    here = ["choose", DETECTOR, "--store", sqlite_url]
    assert main([*here, "--policy", "elbow", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["elbow"] == {**asdict(found), "doubts": list(found.doubts), "knee": None}
    assert said["notes"] == figures.elbow(found)
    assert main([*here, "--policy", "elbow"]) == 0
    assert "\n".join(figures.elbow(found)) in capsys.readouterr().out
    assert main([*here, "--policy", "f1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["elbow"] is None


def test_a_bounded_choice_says_what_it_holds_for(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    store = open_store(sqlite_url)
    scores = [place / 400 for place in range(400)]
    labels = [place < 60 and place % 12 != 0 for place in range(200)]
    fill(store, [*labels, *[None] * 200], scores)  # what is lowest is flagged
    # Half of the top is labelled, as samples by suspicion do.
    keep_sample(store, ["top"] * 60 + ["rest"] * 140, {"top": 120, "rest": 360})
    here = ["choose", DETECTOR, "--sample", "w47", "--strength", "bounded", "--policy", "precision>=0.5"]
    here += ["--store", sqlite_url, "--json"]

    def said(*more: str) -> dict[str, object]:
        assert main([*here, *more]) == 0
        return dict(json.loads(capsys.readouterr().out))

    scope = said()["scope"]
    assert isinstance(scope, dict)
    assert (scope["looks"], scope["detectors"], scope["window"]["differs"]) == (1, 1, True)
    assert 0.3 < scope["window"]["share"] < 0.6
    many = said("--looks", "10")
    assert many["guarantee"]["confidence"] == pytest.approx(0.995)  # type: ignore[index]
    assert "shared among 10 detectors and looks" in " ".join(many["notes"])  # type: ignore[arg-type]
    assert many["recall"]["value"] <= said()["recall"]["value"]  # type: ignore[index]
    for more, match in ((["--looks", "0"], "is no number"), (["--looks", "3", "--strength", "measured"], "of a bound")):
        assert main([*here, *more]) == 2
        assert match in "".join(capsys.readouterr())


def test_where_a_random_sample_bounds_nothing_octaves_are_named(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(sqlite_url)
    fill(store, *draw(120))
    sample = keep_sample(store, ["all"] * 120, {"all": 4000})
    here = ["choose", DETECTOR, "--sample", sample.name, "--strength", "bounded", "--policy", "precision>=0.99"]
    main([*here, "--store", sqlite_url, "--json"])
    octave = figures.OCTAVE in json.loads(capsys.readouterr().out)["notes"]
    assert octave == (sample.design == "random")
    data = loading.load_evidence(store, DETECTOR, sample=sample.name)
    point = operating_points.choose_point(data, Policy("precision", 0.99), strength="bounded")
    random = replace(data, sample=replace(sample, design="random"))
    assert operating_points.octave_would_help(random, point)
    assert not operating_points.octave_would_help(replace(data, sample=replace(sample, design="octave")), point)
    assert operating_points.bounded_scope(store, data, point) is None

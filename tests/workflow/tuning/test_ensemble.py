"""Ensembles through the store, on both databases: the traffic they are cut from, their price, saved and read again."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import ensembles as sentences
from calibrate.stats.ensembles import rules
from calibrate.stats.ensembles.combine import Recipe
from calibrate.stats.ensembles.rules import Fixed, Logistic
from calibrate.types import Score, Usage
from calibrate.workflow.traces.stated_samples import keep_stated
from calibrate.workflow.tuning import ensemble as step
from calibrate.workflow.tuning.ensemble_data import costliest, gather, prices, read_traffic, worth_a_filter
from db import Store
from tests.workflow.making import NOW, fill, give_scores, keep_sample, save

A, B, C = "token_overlap", "rouge_l", "bleu"  # all flag below
JUDGE = "judge_yes_no"


def filled(store: Store, n: int = 120, *, labelled: int | None = None) -> None:
    """Three detectors that know something; the last misses every seventh."""
    rng = np.random.default_rng(3)
    truth = rng.random(n) < 0.3
    labels = [bool(bad) if place < (labelled or n) else None for place, bad in enumerate(truth)]
    one, two, three = (0.7 - 0.2 * truth + rng.normal(0, 0.15, n) for _ in range(3))
    fill(store, labels, [float(score) for score in one], name=A)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(n)])
    give_scores(store, traces, [float(score) for score in two], name=B)
    give_scores(store, traces, [None if place % 7 == 6 else float(s) for place, s in enumerate(three)], name=C)


def test_a_report_says_what_is_flagged_found_and_known(store: Store) -> None:
    filled(store)
    report = step.build(store, Recipe("logistic"), [C, A, B])
    assert isinstance(report.rule, Logistic)
    assert report.rule.detectors == (C, B, A)
    material = report.gathered.training
    scores = report.rule.score(material.traffic)
    assert report.signal.threshold is not None
    assert report.signal.share == pytest.approx(np.mean(scores >= report.signal.threshold))
    assert report.signal.share <= 0.05
    assert not report.gathered.from_labels
    headline = sentences.sentences(report)[0]
    assert headline.startswith("Flags 5% of traffic and finds about ")
    assert f"({report.positives} labelled)" in headline
    assert [one.ranked_by for one in report.compared if one.single] == [C, B, A]
    assert len(report.joint) == 3
    assert report.frontier is None
    again = step.build(store, Recipe("logistic"), [A, B, C])
    assert step.document_of(again) == step.document_of(report)


def test_the_cut_is_read_from_all_traffic_the_labels_only_judge(store: Store) -> None:
    filled(store, 120, labelled=50)
    keep_stated(store, "labels", [f"t{place}" for place in range(50)], design="random", now=NOW)
    found = gather(store, [A, C], sample=None)
    assert len(found.training.labels) == 50
    # The window of the labels ends with the oldest of them.
    assert (found.traffic.n, found.traffic.window, found.from_labels) == (50, 50, False)
    assert np.flatnonzero(np.isnan(found.traffic.scores[C])).tolist() == list(range(6, 50, 7))


def test_traffic_that_not_every_detector_was_asked_about_is_stood_for_by_weighted_labels(store: Store) -> None:
    filled(store, 60)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(30)])
    give_scores(store, traces, [0.1] * 30, name="word_overlap")
    keep_sample(store, ["all"] * 30, {"all": 60})
    found = gather(store, [A, "word_overlap"], sample="w47")
    # The newest trace is dated at the very end of the sample's window, which is exclusive.
    assert (found.traffic.n, found.traffic.window, found.from_labels) == (29, 59, True)
    assert np.array_equal(found.training.traffic[A], found.training.scores[A])
    assert np.allclose(found.training.traffic_weights, 2.0)
    report = step.build(store, Recipe("k_of_n", k=1), [A, "word_overlap"], sample="w47")
    assert any("only 29 of 59 traces" in note for note in sentences.notes(report))


def test_refusals_are_neither_traffic_nor_labels(store: Store) -> None:
    filled(store, 60)
    trace = store.traces.load([store.traces.find("t4") or 0])[0]
    config = store.scores.configs(B)[0]
    refusal = Score(trace.id, None, "it declines to answer", "refusal")
    store.scores.save(config.id, [(trace.content_hash(), refusal)], now=NOW)
    found = gather(store, [A, B], sample=None)
    assert (found.traffic.n, found.traffic.window, len(found.training.labels)) == (59, 59, 59)


def test_a_long_window_is_read_in_part(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store, 60)
    monkeypatch.setattr("calibrate.workflow.tuning.ensemble_data.MOST", 20)
    found = read_traffic(store, gather(store, [A, B], sample=None).data.configs, None)
    assert (found.n, found.window) == (20, 20)


def test_saved_operating_points_are_the_thresholds(store: Store) -> None:
    filled(store)
    assert not step.has_saved_thresholds(store, [A, B])
    with pytest.raises(BadInput, match="no saved operating point for these scores of rouge_l, token_overlap"):
        step.build(store, Recipe("k_of_n", k=1), [A, B], saved_thresholds=True)
    points = [save(store, "manual:0.4", name=name) for name in (A, B)]
    assert step.has_saved_thresholds(store, [A, B])
    report = step.build(store, Recipe("k_of_n", k=1), [A, B], saved_thresholds=True)
    assert report.rule == Fixed(1, dict.fromkeys((A, B), ("below", 0.4)))
    values = report.gathered.training.traffic
    assert report.signal.share == pytest.approx(np.mean((values[A] <= 0.4) | (values[B] <= 0.4)))
    assert report.budget == report.signal.share
    assert points[0].threshold == 0.4
    assert any("flatter" in note for note in sentences.notes(report))


def test_a_judge_is_last_in_a_cascade_and_its_price_is_the_median(store: Store) -> None:
    filled(store, 60)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(60)])
    config = store.scores.config(JUDGE, "1", {}, "gpt", now=NOW)
    pairs = []
    for place, trace in enumerate(traces):
        usage = Usage(1, 1) if place % 3 == 0 else Usage(1, 0, 100, 10, 0.002 if place % 2 else 0.004)
        pairs.append((trace.content_hash(), replace(Score(trace.id, float(place % 2)), usage=usage, seconds=1.0)))
    store.scores.save(config.id, pairs, now=NOW)
    found = gather(store, [A, JUDGE], sample=None)
    priced = prices(store, found.data.configs)
    assert priced[JUDGE].calls == 1
    assert priced[JUDGE].dollars == pytest.approx(0.003)
    assert priced[A].calls is None
    assert costliest(priced).detector == JUDGE
    assert worth_a_filter(priced)
    report = step.build(store, Recipe("cascade"), [A, JUDGE])
    assert report.recipe.expensive == JUDGE
    assert report.frontier is not None
    assert report.frontier.steps[-1].dollars == pytest.approx(3.0)


def test_an_ensemble_saved_is_the_same_when_read(store: Store) -> None:
    filled(store)
    report = step.build(store, Recipe("logistic"), [A, B, C])
    step.save(store, " grounding ", sentences.document(report), by="ann", now=NOW)
    step.save(store, "grounding", sentences.document(report), by="bob", now=NOW)
    (one,) = step.saved(store)
    assert (one.name, one.saved_by) == ("grounding", "bob")
    assert rules.from_json(one.ensemble.rule) == report.rule
    assert one.ensemble == sentences.document(report)
    assert one.ensemble.cuts.signal.threshold == report.signal.threshold
    with pytest.raises(BadInput, match="needs a name"):
        step.save(store, "  ", sentences.document(report), by="ann", now=NOW)


def test_the_page_cut_is_no_looser_than_the_budget_and_bounded(store: Store) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.3
    fill(store, [bool(bad) for bad in truth], [float(s) for s in 0.8 - 0.6 * truth + rng.normal(0, 0.05, 300)], name=A)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(300)])
    give_scores(store, traces, [float(s) for s in 0.8 - 0.6 * truth + rng.normal(0, 0.05, 300)], name=B)
    for recipe in (Recipe("logistic"), Recipe("k_of_n", k=1)):
        report = step.build(store, recipe, [A, B], budget=0.2)
        assert report.page.strength == "bounded"
        assert report.page.threshold is not None
        assert report.signal.threshold is not None
        assert report.page.threshold >= report.signal.threshold
        assert report.page.bound is not None
        assert report.page.bound >= 0.7


def test_members_that_nobody_named_are_picked_anew_in_every_fold(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(store)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(120)])
    rng = np.random.default_rng(7)
    for name in ("bertscore", "semantic_similarity", "word_overlap"):  # they know nothing
        give_scores(store, traces, [float(score) for score in rng.random(120)], name=name)
    report = step.build(store, Recipe("logistic"))
    assert report.picks is not None
    assert sum(report.picks.values()) == 4 * report.dealt
    assert {A, B} <= set(report.rule.detectors)
    assert len(report.rule.detectors) == 4
    assert len([row for row in report.compared if row.single]) == 6, "each alone, picked or not"
    assert any(f"Token overlap in {report.picks[A]}" in note for note in sentences.notes(report))
    named = step.build(store, Recipe("logistic"), report.rule.detectors)
    assert named.picks is None
    assert named.rule == report.rule
    assert (named.signal, named.each) == (report.signal, report.each)
    assert step.build(store, Recipe("cascade", expensive="bertscore")).recipe.expensive == "bertscore"
    assert main(["ensemble", "logistic", "--store", store_url]) == 0
    assert "picked anew in each of 50 training folds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "names", "says"),
    [
        ([True, False] * 20, [A], "at least two detectors"),
        ([True] * 40, [A, B], "all 40 labels are hallucinated"),
        ([None] * 40, [A, B], "no labels"),
        ([True, False] * 20, [A, "citation_validity"], "citation_validity could score none of the 40"),
        ([True, False] * 20, [A, "rouge_1"], "did you mean"),
    ],
)
def test_what_no_ensemble_can_be_made_of(store: Store, labels: list[bool | None], names: list[str], says: str) -> None:
    fill(store, labels, [0.1 * (place % 7) for place in range(40)], name=A)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(40)])
    give_scores(store, traces, [0.1 * (place % 5) for place in range(40)], name=B)
    give_scores(store, traces, [None] * 40, name="citation_validity")
    with pytest.raises(BadInput, match=says):
        step.build(store, Recipe("logistic"), names)


def test_the_command_line_says_the_same_and_saves(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(store)
    at = ["--store", store_url]
    assert main(["ensemble", "k_of_n", A, B, C, "--k", "2", "--budget", "0.1", "--save", "two", "--json", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    report = step.build(store, Recipe("k_of_n", k=2), [A, B, C], budget=0.1)
    assert document["sentence"] == " ".join(sentences.sentences(report))
    assert document["rule"]["k"] == 2
    assert {one["name"] for one in document["compared"]} >= {A, B, C, "at least 2", "logistic"}
    assert main(["ensemble", "list", *at]) == 0
    assert "two" in capsys.readouterr().out
    assert main(["ensemble", "logistic", *at]) == 0
    assert "out of fold" in capsys.readouterr().out
    assert main(["ensemble", "k_of_n", A, *at]) == 2
    assert main(["ensemble", "k_of_n", A, B, "--save", "", *at]) == 2


@pytest.mark.parametrize(("prevalence", "budget"), [(None, 0.05), (0.02, 0.05), (0.1, 0.05), (0.38, 0.19), (1.0, 0.5)])
def test_the_usual_budget_is_no_small_part_of_what_is_hallucinated(prevalence: float | None, budget: float) -> None:
    assert step.usual_budget(prevalence) == budget

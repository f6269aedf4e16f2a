"""Curves side by side, through the store: scikit-learn's areas, and differences that chance explains or does not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import compare as sentences
from calibrate.types import Label, Record, Trace
from calibrate.workflow.evidence import loading
from calibrate.workflow.tuning import compare
from db import Store, open_store
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, keep_sample


def both(store: Store, labels: list[bool], first: list[float | None], second: list[float | None]) -> None:
    """One detector that flags below and one that flags above, on the same labelled traces."""
    fill(store, labels, first)
    give_scores(store, store.traces.load(range(1, len(labels) + 1)), second, name=ABOVE)


def test_two_detectors_are_compared_where_both_have_a_score(store: Store) -> None:
    labels, first = draw(200)
    rng = np.random.default_rng(3)
    second: list[float | None] = [float(rng.normal(0.5 + 0.1 * y)) if i % 7 else None for i, y in enumerate(labels)]
    both(store, labels, first, second)
    found = compare.of_detectors(store, [DETECTOR, ABOVE])
    (difference,) = found.differences
    kept = [i for i in range(200) if first[i] is not None and second[i] is not None]
    y = np.array(labels)[kept]
    one, other = -np.array([first[i] for i in kept]), np.array([second[i] for i in kept])
    assert (difference.n, difference.positives, difference.paired) == (len(kept), y.sum(), True)
    assert difference.auroc.value == pytest.approx(roc_auc_score(y, other) - roc_auc_score(y, one), abs=1e-9)
    average = average_precision_score(y, other) - average_precision_score(y, one)
    assert difference.average_precision.value == pytest.approx(average, abs=1e-9)
    assert difference.auroc.high is not None
    assert difference.auroc.high < 0  # a separation of two standard deviations against one of a tenth
    assert [series.auroc.value for series in found.series] == [s.sweep.auroc for s in found.series]


def test_a_verdict_is_held_against_the_number_of_differences(store: Store) -> None:
    """The same pair, alone and beside four more: the figures stay, what is said of them does not."""
    labels, _ = draw(200)
    rng = np.random.default_rng(0)
    common = rng.standard_normal(200)
    y = np.array(labels)

    def like(common_part: float, shift: float) -> list[float]:
        noise = rng.standard_normal(200)
        return [float(one) for one in -(common_part * common + noise + shift * y)]

    first, second = like(1, 0.5), like(1, 1.15)
    fill(store, labels, list(first))
    traces = store.traces.load(range(1, 201))
    give_scores(store, traces, second, name="bleu")
    others = ["rouge_l", "bertscore", "word_overlap", "semantic_similarity"]
    for name in others:
        give_scores(store, traces, like(1, 0.5), name=name)
    alone = compare.of_detectors(store, [DETECTOR, "bleu"])
    beside = compare.of_detectors(store, [DETECTOR, "bleu", *others])
    assert beside.differences[0].auroc == alone.differences[0].auroc
    assert (alone.differences[0].verdict, beside.differences[0].verdict) == ("better", "alone")
    headline, figures = sentences.difference(beside, beside.differences[0])
    assert headline == f"bleu is not shown to differ from {DETECTOR}"
    assert figures.endswith("comparing 5 can explain that much")
    assert any("holds for all 5 together" in said for said in sentences.cautions(beside))


def test_a_detector_against_its_own_scores_turned_round_differs_in_nothing(store: Store) -> None:
    labels, scores = draw()
    both(store, labels, scores, [None if score is None else -score for score in scores])
    (difference,) = compare.of_detectors(store, [DETECTOR, ABOVE]).differences
    assert (difference.auroc.low, difference.auroc.value, difference.auroc.high) == pytest.approx((0, 0, 0), abs=1e-12)


def test_each_model_has_its_own_traces_with_the_weights_of_the_sample(store: Store) -> None:
    labels, scores = draw(90, ties=False)
    fill(store, labels, scores)
    strata = ["few" if place < 30 else "many" for place in range(90)]
    keep_sample(store, strata, {"few": 60, "many": 6000})
    data = loading.load_evidence(store, DETECTOR, sample="w47")
    assert compare.models_of(data) == ["a", "b"]
    found = compare.of_models(store, DETECTOR, ["a", "b"], sample="w47")
    for series, third in zip(found.series, (False, True), strict=True):
        rows = [i for i in range(90) if (i % 3 == 0) is third and scores[i] is not None]
        weights = [2.0 if i < 30 else 100.0 for i in rows]
        expected = roc_auc_score(np.array(labels)[rows], [-float(scores[i] or 0) for i in rows], sample_weight=weights)
        assert series.auroc.value == pytest.approx(expected, abs=1e-9)
    (difference,) = found.differences
    assert not difference.paired
    assert difference.n == 90
    first, second = (series.auroc.value or 0.0 for series in found.series)
    assert difference.auroc.value == pytest.approx(second - first)


def test_two_weeks_and_a_week_that_cannot_be_judged(store: Store) -> None:
    labels, scores = draw(60)
    labels[40:] = [False] * 20
    fill(store, labels, scores)
    keep_sample(store, ["all"] * 30, {"all": 300})
    keep_sample(store, ["all"] * 40, {"all": 300}, name="w48")
    found = compare.of_samples(store, DETECTOR, ["w47", "w48"])
    (difference,) = found.differences
    assert (difference.name, difference.missing, difference.n, difference.shared) == ("w48", None, 70, 30)
    assert any("that w47 and w48 share: 30." in said for said in sentences.cautions(found))


def test_a_series_of_few_labels_widens_no_other_difference(store: Store) -> None:
    labels, scores = draw(60)
    fill(store, labels, scores)
    for name, many in (
        ("w47", 50),
        ("w48", 60),
        ("w49", next(place for place in range(60) if sum(labels[:place]) == 1)),
    ):
        keep_sample(store, ["all"] * many, {"all": 300}, name=name)
    alone, beside = (compare.of_samples(store, DETECTOR, ["w47", "w48", *more]) for more in ((), ("w49",)))
    assert beside.differences[0] == alone.differences[0]


def test_separate_weeks_share_nothing_and_few_labels_are_a_caution(store: Store) -> None:
    labels = [place % 2 == 0 for place in range(60)]
    both(store, labels, *(list(np.random.default_rng(seed).random(60)) for seed in (1, 2)))
    plenty = compare.of_detectors(store, [DETECTOR, ABOVE])
    assert (plenty.differences[0].shared, sentences.cautions(plenty)) == (0, [])
    keep_sample(store, ["all"] * 3, {"all": 60})
    (said,) = sentences.cautions(compare.of_detectors(store, [DETECTOR, ABOVE], sample="w47"))
    assert said.startswith(f"{DETECTOR}, {ABOVE}: one label more or less moves every figure")


def test_a_comparison_needs_two(store: Store) -> None:
    fill(store, *draw())
    with pytest.raises(BadInput, match=f"two detectors or more, and there is only {DETECTOR}: name another"):
        compare.of_detectors(store, [DETECTOR])
    with pytest.raises(BadInput, match="each of its samples once, and w47 is named twice"):
        compare.of_samples(store, DETECTOR, ["w47", "w47"])


def test_a_models_name_cannot_act_on_a_terminal(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = open_store(sqlite_url)
    for model in ("red\x1b[31m", "plain"):
        traces = [Trace(f"{model}{place}", f"{model} {place}", model=model) for place in range(20)]
        records = [
            Record(place, trace, (Label(trace.id, "", "hallucinated" if place % 2 else "clean"),))
            for place, trace in enumerate(traces)
        ]
        found.traces.add(records, labels_as="gold", now=NOW)
        give_scores(found, traces, [place / 20 for place in range(20)])
    found.close()
    assert main(["compare", DETECTOR, "--by", "models", "--store", sqlite_url]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.count("red⟦") >= 2

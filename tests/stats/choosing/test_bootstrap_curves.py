"""Resampled sweeps: scikit-learn on the same resamples, the variance formulas, cells against rows, and the truth."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, precision_score, recall_score, roc_auc_score

from calibrate.errors import BadInput
from calibrate.simulate.scenarios import TARGET, grid
from calibrate.simulate.trials import design_of, draw
from calibrate.stats.choosing import bootstrap_curves as curves
from calibrate.stats.choosing.bootstrap_curves import bootstrap_curves
from calibrate.stats.choosing.chance_below_target import chance_below
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.elbow import elbow_spread
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.intervals.bootstrap import Units, draw_counts
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.design import Design
from calibrate.stats.sweep.sweep import sweep

HALF = parse("precision>=0.5")


def traces(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Labels, a fifth hallucinated, and scores with ties."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.2
    return labels, (rng.normal(size=n) + 1.5 * labels).round(2)


def strata(scores: np.ndarray) -> Design:
    """The upper scores labelled more densely than the rest; missing ones are in the rest."""
    return Design((~(scores >= 0.8)).astype(np.int64), np.array([4000, 40_000]))


@pytest.mark.parametrize("flag_when", ["above", "below"])
@pytest.mark.parametrize("case", ["rows", "strata", "groups"])
def test_every_figure_is_scikit_learns_on_the_same_resamples(flag_when: str, case: str) -> None:
    labels, scores = traces(150)
    design = strata(scores) if case == "strata" else None
    groups = [f"g{i // 3}" for i in range(150)] if case == "groups" else None
    sign = 1 if flag_when == "above" else -1
    found = bootstrap_curves(
        labels, sign * scores, design=design, groups=groups, flag_when=flag_when, thresholds=[sign * 1.0, sign * 0.333],
        policy=HALF, count=20, rng=np.random.default_rng(3),
    )  # fmt: skip
    units = Units.of_codes(np.arange(150), design.strata if design else None) if groups is None else Units.among(groups)
    times = np.concatenate(list(draw_counts(units, 20, np.random.default_rng(3))))
    weights = times * (design.weights if design else 1.0)
    for row, w in enumerate(weights):
        assert found.auroc[row] == pytest.approx(roc_auc_score(labels, scores, sample_weight=w))
        average = average_precision_score(labels, scores, sample_weight=w)
        assert found.average_precision[row] == pytest.approx(average)
        for at, threshold in enumerate((1.0, 0.333)):
            flagged = scores >= threshold
            assert found.precision[row, at] == pytest.approx(precision_score(labels, flagged, sample_weight=w))
            assert found.recall[row, at] == pytest.approx(recall_score(labels, flagged, sample_weight=w))
        there = w > 0
        again = choose(sweep(labels[there], scores[there], weights=w[there]), HALF)
        assert (sign * found.chosen[row] == again.threshold) == again.feasible


def test_strata_draw_as_many_as_they_have_and_groups_stay_whole() -> None:
    code = np.repeat([0, 1, 2], [5, 10, 20])
    (times,) = draw_counts(Units.of_codes(np.arange(35), code), 200, np.random.default_rng(0))
    assert_allclose(times @ (code[:, None] == np.arange(3)), np.tile([5, 10, 20], (200, 1)))
    nested = Units.among([f"{c} {i % 2}" for i, c in enumerate(code)], code)
    assert nested.sizes.tolist() == [2, 2, 2]
    across = Units.among([str(i % 7) for i in range(35)], code)
    assert across.sizes.tolist() == [7]
    (times,) = draw_counts(across, 200, np.random.default_rng(0))
    assert_allclose(times[:, :7], times[:, 28:35])


@pytest.mark.parametrize("weighted", ["not", "strata", "weights"])
def test_cells_say_what_rows_say(weighted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, scores = traces(1500, seed=4)
    scores[::9] = np.nan
    design = strata(scores) if weighted == "strata" else None
    weights = np.random.default_rng(0).uniform(0.5, 3, 1500) if weighted == "weights" else None

    def quantiles() -> list[np.ndarray]:
        found = bootstrap_curves(
            labels, scores, design=design, weights=weights, thresholds=[1.0, 2.0, 9.0], policy=HALF,
            rng=np.random.default_rng(6),
        )  # fmt: skip
        kept = (found.precision[:, :2], found.recall, found.auroc, found.average_precision)
        assert np.isnan(found.precision[:, 2]).all()
        return [np.quantile(one, (0.025, 0.25, 0.5, 0.75, 0.975), axis=0) for one in kept]

    rows = quantiles()
    monkeypatch.setattr(curves, "EXACT", 100)
    for one, other in zip(rows, quantiles(), strict=True):
        # A tenth of the interval's width: what is left is the noise of 2,000 draws.
        assert np.all(np.abs(one - other) <= 0.1 * (one[-1] - one[0]) + 1e-12)


def test_the_spread_is_that_of_the_variance_formulas() -> None:
    labels, scores = traces(1200, seed=8)
    design = strata(scores)
    found = bootstrap_curves(labels, scores, design=design, thresholds=[1.2], rng=np.random.default_rng(1))
    known = figures(sweep(labels, scores, design=design), 1.2)
    for draws, interval in ((found.precision[:, 0], known.precision), (found.recall[:, 0], known.recall)):
        low, high = np.quantile(draws, (0.025, 0.975))
        assert high - low == pytest.approx(interval.high - interval.low, rel=0.12)  # type: ignore[operator]


def test_groups_that_err_together_are_worth_less() -> None:
    labels, scores = (np.repeat(one, 5) for one in traces(100, seed=2))
    groups = [str(i // 5) for i in range(500)]
    alone = bootstrap_curves(labels, scores, thresholds=[1.0], rng=np.random.default_rng(1)).precision
    together = bootstrap_curves(labels, scores, groups=groups, thresholds=[1.0], rng=np.random.default_rng(1)).precision
    assert together.std() == pytest.approx(np.sqrt(5) * alone.std(), rel=0.1)


def test_resamples_that_cannot_say_are_nan() -> None:
    found = bootstrap_curves(
        [1, 0, 0], [3.0, 2.0, 1.0], thresholds=[2.5], policy=HALF, count=400, rng=np.random.default_rng(0)
    )
    lost = np.isnan(found.auroc)
    assert lost.mean() == pytest.approx((2 / 3) ** 3 + (1 / 3) ** 3, abs=0.07)  # all clean, or all hallucinated
    assert np.array_equal(np.isnan(found.chosen), lost)
    nothing = bootstrap_curves(
        [1, 0], [np.nan, np.nan], thresholds=[1.0], policy=HALF, count=5, rng=np.random.default_rng(0)
    )
    assert np.isnan(nothing.auroc).all()
    assert np.isnan(nothing.chosen).all()
    assert np.isnan(nothing.precision).all()


def test_bad_input_is_a_sentence() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(BadInput, match="2 labels and 1 scores"):
        bootstrap_curves([1, 0], [1.0], rng=rng)
    with pytest.raises(BadInput, match="one group or None, per label"):
        bootstrap_curves([1, 0], [1.0, 2.0], groups=["a"], rng=rng)
    with pytest.raises(BadInput, match="every weight must be a finite number above 0"):
        bootstrap_curves([1, 0], [1.0, 2.0], weights=[0.0, 0.0], rng=rng)
    with pytest.raises(BadInput, match="the labels do not move the threshold of alerts<=5/day"):
        bootstrap_curves([1, 0], [1.0, 2.0], policy=parse("alerts<=5/day"), rng=rng)


def test_the_elbow_spreads_as_elbows_of_fresh_labels_do() -> None:
    fresh = [choose(sweep(*traces(300, seed)), Policy("elbow")).threshold for seed in range(60)]
    widths = []
    for seed in range(8):
        labels, scores = traces(300, seed)
        spread = elbow_spread(labels, scores, rng=np.random.default_rng(0))
        turned = elbow_spread(labels, -scores, flag_when="below", rng=np.random.default_rng(0))
        assert spread is not None
        assert turned is not None
        assert (turned.high, turned.low) == pytest.approx((-spread.low, -spread.high))
        widths.append(spread.high - spread.low)
    assert np.mean(widths) == pytest.approx(np.subtract(*np.quantile(fresh, (0.75, 0.25))), rel=0.4)
    assert elbow_spread([0, 0], [1.0, 2.0], rng=np.random.default_rng(0)) is None


@pytest.mark.parametrize(("cell", "design"), [(4, "random"), (8, "octave"), (9, "octave")])
def test_the_chance_of_missing_the_target_is_about_how_often_it_is_missed(cell: int, design: str) -> None:
    traffic = next(islice(grid(), cell, None))
    rng = np.random.default_rng(cell)
    sample = draw(traffic, 300, design=design, replications=90, rng=rng)
    missed, said = [], []
    for rows, verdicts in zip(sample.rows, sample.verdicts, strict=True):
        found = sweep(verdicts, traffic.scores[rows], design=design_of(traffic, rows, design))
        chance = None if found.missing else chance_below(found, Policy("precision", TARGET), rng=rng, count=60)
        if chance is None or not (point := choose(found, Policy("precision", TARGET))).feasible:
            continue
        flagged = int(np.searchsorted(-traffic.scores, -point.threshold, side="right"))
        missed.append(traffic.precision[flagged - 1] < TARGET)
        said.append(chance)
    assert np.mean(said) == pytest.approx(np.mean(missed), abs=0.12)


def test_a_chance_is_of_a_precision_only() -> None:
    rng = np.random.default_rng(0)
    assert chance_below(sweep(*traces(100)), Policy("elbow"), rng=rng) is None
    assert chance_below(sweep([0, 0], [1.0, 2.0]), HALF, rng=rng) is None
    hopeless = sweep(np.arange(200) % 10 == 0, np.arange(200.0) % 7)
    assert chance_below(hopeless, Policy("precision", 0.99), rng=rng) is None

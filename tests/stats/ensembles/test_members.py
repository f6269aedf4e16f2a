"""Members that nobody named are picked without the fold they are judged on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calibrate.stats.ensembles import combine, members, nested_cv
from calibrate.stats.ensembles.combine import Recipe
from calibrate.stats.ensembles.members import Picking
from calibrate.stats.ensembles.performance import Judged, measure_performance
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sweep.design import Floats
from calibrate.types import FlagWhen

PREVALENCE, BUDGET = 0.05, 0.05
BEST = Picking(4)


def noise(rng: np.random.Generator, *, detectors: int = 20, n: int = 300, missing: float = 0.0) -> TrainingData:
    """Detectors that know nothing; every other one flags below."""
    names = [f"d{place:02}" for place in range(detectors)]
    ways: dict[str, FlagWhen] = {name: "below" if place % 2 else "above" for place, name in enumerate(names)}

    def draw(many: int) -> Mapping[str, Floats]:
        scores = {name: rng.standard_normal(many) for name in names}
        for values in scores.values():
            values[rng.random(many) < missing] = np.nan
        return scores

    return TrainingData(
        rng.random(n) < PREVALENCE, np.ones(n), [None] * n, None, draw(n), draw(1000), np.ones(1000), ways
    )


@pytest.mark.parametrize("few", [0, 10_000], ids=["logistic", "mean rank"])
def test_of_twenty_detectors_that_know_nothing_the_best_four_know_nothing(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag on noise is right as often as any trace: the intervals hold the prevalence, and that budget as recall.

    Picked on all labels instead, they seem to find twice as much, and the intervals of a mean rank hold the truth in
    about .7 of such samples.
    """
    monkeypatch.setattr(nested_cv, "FEW", few)
    monkeypatch.setattr(combine, "FEW", few)
    held: dict[str, list[bool]] = {"in folds": [], "on all labels": []}
    values = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        given = noise(rng)
        folds = nested_cv.repeat_folds(given, rng=rng, repeats=2)
        picked = members.pick_in_folds(given, folds, BEST)
        apparent = given.select(members.pick_members(given, BEST))
        judged: dict[str, Judged] = {
            "in folds": nested_cv.judge_picked(lambda names: Recipe("logistic"), given, folds, picked, budget=BUDGET),
            "on all labels": nested_cv.judge_recipe(Recipe("logistic"), apparent, folds, budget=BUDGET),
        }
        for how, flags in judged.items():
            data = given if how == "in folds" else apparent
            figures = measure_performance(data, flags)
            for figure, truth in ((figures.precision, PREVALENCE), (figures.recall, BUDGET)):
                assert figure.low is not None
                assert figure.high is not None
                held[how].append(figure.low <= truth <= figure.high)
            values.append((how, figures.recall.value))
    assert np.mean(held["in folds"]) >= 0.93
    assert np.mean(held["on all labels"]) < (0.9 if few else 0.96)
    means = {how: np.mean([value or 0.0 for which, value in values if which == how]) for how in held}
    assert means["in folds"] == pytest.approx(BUDGET, abs=0.02)
    assert means["on all labels"] > 1.5 * BUDGET


def test_the_members_of_a_fold_are_those_that_scikit_learn_ranks_best_without_it() -> None:
    rng = np.random.default_rng(1)
    given = noise(rng, detectors=7, n=400, missing=0.1)
    folds = nested_cv.repeat_folds(given, rng=rng, repeats=3)
    picked = members.pick_in_folds(given, folds, Picking(2, ("d06",)))
    assert sum(where.sum() for where in picked.values()) == 15
    for names, where in picked.items():
        for repeat, fold in np.argwhere(where):
            areas = {}
            for name in given.names:
                scores = given.scores[name] * (1 if given.flag_when[name] == "above" else -1)
                rows = np.isfinite(scores) & (folds[repeat] != fold)
                areas[name] = roc_auc_score(given.labels[rows], scores[rows])
            del areas["d06"]
            assert set(names) == {"d06", max(areas, key=lambda name: areas[name])}
    assert members.count_picks(picked)["d06"] == 15


def test_members_that_are_the_same_in_every_fold_are_judged_as_if_they_had_been_named() -> None:
    rng = np.random.default_rng(2)
    given = noise(rng, detectors=4)
    folds = nested_cv.repeat_folds(given, rng=rng, repeats=2)
    picked = members.pick_in_folds(given, folds, BEST)
    assert list(picked) == [given.names]
    for recipe in (Recipe("logistic"), Recipe("k_of_n", k=2)):
        named = nested_cv.judge_recipe(recipe, given, folds, budget=BUDGET)
        judged = nested_cv.judge_picked(lambda names, made=recipe: made, given, folds, picked, budget=BUDGET)  # type: ignore[misc]
        assert np.array_equal(judged.flags, np.broadcast_to(named.flags, judged.flags.shape))

"""Judging an ensemble out of fold, the picking of its members too where nobody named them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.ensembles import members, nested_cv
from calibrate.stats.ensembles.cascade import Price
from calibrate.stats.ensembles.combine import KINDS, Recipe
from calibrate.stats.ensembles.performance import (
    Drawn,
    Judged,
    Performance,
    draw_resamples,
    measure_performance,
    recall_difference,
)
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sweep.design import Bools, Ints
from calibrate.types import Interval
from calibrate.workflow.tuning.ensemble_data import costliest


@dataclass(frozen=True)
class Compared:
    """One detector, or a kind of ensemble, at the same alert budget. `apart`: its recall minus the best single's."""

    ranked_by: str | Recipe
    figures: Performance
    apart: Interval | None

    @property
    def single(self) -> bool:
        return isinstance(self.ranked_by, str)


@dataclass(frozen=True)
class Judging:
    """What ensembles are judged on: labels of all candidates, and folds. `picked` are the members of each fold; None
    where they were named, so that they are the candidates. `last` is the detector that a cascade was told to ask last.
    """

    training: TrainingData
    folds: Ints
    drawn: Drawn
    picked: Mapping[tuple[str, ...], Bools] | None
    prices: Mapping[str, Price]
    last: str

    @classmethod
    def of(
        cls,
        training: TrainingData,
        picking: members.Picking | None,
        prices: Mapping[str, Price],
        last: str,
        *,
        seed: int,
    ) -> Judging:
        rng = np.random.default_rng(seed)
        folds = nested_cv.repeat_folds(training, rng=rng)
        drawn = draw_resamples(training, rng=rng)
        picked = members.pick_in_folds(training, folds, picking) if picking else None
        return cls(training, folds, drawn, picked, prices, last)

    def recipe_of(self, recipe: Recipe, names: Sequence[str]) -> Recipe:
        """The recipe for these members: the costliest of them is asked last, where none was named."""
        last = self.last or costliest({name: self.prices[name] for name in names}).detector
        return replace(recipe, expensive=last)

    def judge(self, recipe: Recipe, *, budget: float) -> Judged:
        training, folds, picked = self.training, self.folds, self.picked
        if picked is None:
            return nested_cv.judge_recipe(self.recipe_of(recipe, training.names), training, folds, budget=budget)
        return nested_cv.judge_picked(
            lambda names: self.recipe_of(recipe, names), training, folds, picked, budget=budget
        )

    def compare(self, recipe: Recipe, best: Judged, most: int, *, budget: float) -> tuple[Compared, ...]:
        """Every candidate alone and every kind of ensemble of `most` members, at the same budget and on the same
        resamples."""
        rows = []
        for name in self.training.names:
            judged = nested_cv.judge_single(name, self.training, budget=budget)
            rows.append(Compared(name, measure_performance(self.training, judged), None))
        for kind in KINDS:
            if kind == "k_of_n" and most < 3:
                continue
            other = replace(recipe, kind=kind, k=min(recipe.k, most), thresholds={})
            tried = recipe if kind == recipe.kind else other
            try:
                judged = self.judge(tried, budget=budget)
            except BadInput:  # a filter too coarse for a cascade
                if kind == recipe.kind:
                    raise
                continue
            apart = recall_difference(self.training, judged, best, self.drawn)
            rows.append(Compared(tried, measure_performance(self.training, judged), apart))
        return tuple(rows)

"""What `learn` promises, measured where the truth is known: a head that knows nothing more is seldom offered, and one
that reads what only sentences show is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrate.simulate.targets import Report, Row
from calibrate.stats.ensembles.head import HeadData, judge_best_detector, judge_head
from calibrate.stats.ensembles.nested_cv import repeat_folds
from calibrate.stats.ensembles.performance import auroc_difference, draw_resamples
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.types import Interval

SEED = 20261124
DETECTORS = 4
STATISTICS = 5
GROUP = 3  # traces that share their sources
ALIKE = 0.6  # correlation of everything that is found in one answer
REPEATS, RESAMPLES = 2, 200  # fewer than `learn` takes, so that intervals are a little wider


@dataclass(frozen=True)
class World:
    """What an answer's scores know of it: of the first detector its score lies `score` standard deviations higher where
    it is hallucinated, its worst sentence `sentence`. Everything else is noise, correlated by `alike`: where that is
    above 0, noise in common can be taken off, which is a gain. `weighted` labels stand for unequal shares of the
    traffic."""

    name: str
    n: int
    prevalence: float
    score: float = 0.0
    sentence: float = 0.0
    weighted: bool = False
    alike: float = ALIKE

    def draw(self, rng: np.random.Generator) -> tuple[TrainingData, HeadData]:
        """Labels, and what every detector found."""
        n, groups = self.n, np.arange(self.n) // GROUP
        labels = rng.random(n) < self.prevalence
        labels[:2] = True, False
        common = np.sqrt(self.alike) * (rng.standard_normal(n) + 0.5 * rng.standard_normal(n)[groups]) / np.sqrt(1.25)
        features = {}
        for number in range(DETECTORS):
            each = common[:, None] + np.sqrt(1 - self.alike) * rng.standard_normal((n, STATISTICS))
            if number == 0:
                each[:, 0] += self.score * labels
                each[:, 1] += self.sentence * labels
            features[f"d{number}"] = each
        weights = rng.choice([1.0, 4.0], n) if self.weighted else np.ones(n)
        scores = {name: values[:, 0] for name, values in features.items()}
        named = [str(group) for group in groups]
        training = TrainingData(
            labels, weights, named, None, scores, scores, weights, dict.fromkeys(scores, "above")
        )  # fmt: skip
        return training, HeadData(labels, weights, features)


NOTHING = (
    World("labels shuffled, 120 labels", 120, 0.2),
    World("labels shuffled, 300 labels", 300, 0.2),
    World("labels shuffled, weighted", 300, 0.2, weighted=True),
    World("one detector knows, its sentences add nothing", 300, 0.2, score=0.8, alike=0.0),
)
PLANTED = (
    World("a sentence shows it, 300 labels", 300, 0.25, score=0.4, sentence=1.4),
    World("a sentence shows it, weighted", 300, 0.25, score=0.4, sentence=1.4, weighted=True),
)
POWER = 0.8


def measure(
    replications: int,
    *,
    seed: int = SEED,
    on_progress: Callable[[int, int, str], None] = lambda done, total, step: None,
) -> Report:
    """Make the table of what `learn` promises. `on_progress` hears of every world as it begins."""
    rows, worlds = [], (*NOTHING, *PLANTED)
    for number, world in enumerate(worlds):
        on_progress(number, len(worlds), world.name)
        rows.append(offered(world, replications, np.random.default_rng([seed, number])))
    return Report(replications, seed, tuple(rows), ())


def offered(world: World, runs: int, rng: np.random.Generator) -> Row:
    """How often a head is offered in this world."""
    gains = np.array([_gains(compare(*world.draw(rng), rng)) for _ in range(runs)])
    rate, is_null = float(gains.mean()), world in NOTHING
    error = float(np.sqrt(rate * (1 - rate) / runs))
    met = rate <= 0.05 if is_null else rate >= POWER
    target = "≤ 5%" if is_null else f"≥ {POWER:.0%}"
    return Row(f"a head is offered: {world.name}", target, rate, error, rate, rate, f"{runs:,} sets of labels", met)


def compare(training: TrainingData, data: HeadData, rng: np.random.Generator) -> Interval:
    """The head's AUROC minus that of the best single detector, as `learn` compares them."""
    folds = repeat_folds(training, rng=rng, repeats=REPEATS)
    drawn = draw_resamples(training, rng=rng, count=RESAMPLES)
    return auroc_difference(training, judge_head(data, folds).judged, judge_best_detector(training, folds), drawn)


def _gains(difference: Interval) -> bool:
    return difference.low is not None and difference.low > 0

"""What thresholds per segment promise, measured where the truth is known: no loss against one threshold, few false
offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from calibrate.errors import BadInput
from calibrate.simulate.targets import Report, Row
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.segments.choosing import choose_segments
from calibrate.stats.segments.rows import SegmentRows
from calibrate.stats.sweep.design import Floats

SEED = 20261123
TARGET = 0.7
SIZES = ((30, 30, 30), (30, 60, 100, 300), (100, 100, 100, 100), (300,) * 6)
PREVALENCES = (0.1, 0.3)
KINDS = ("alike", "other rates", "shifted scores", "one apart", "other slopes")
RESAMPLES = 400
APART = 1.5  # spreads between the scores of hallucinated and clean traces
SCORES = np.linspace(-4.0, 9.0, 4000)


@dataclass(frozen=True)
class World:
    """Segments of equal traffic with `sizes` labels each. Scores of clean traces are normal around `shift`, those of
    hallucinated ones `apart` above, with spread 1; `rates` are the shares hallucinated."""

    name: str
    kind: str
    sizes: tuple[int, ...]
    rates: Floats
    shift: Floats
    apart: Floats

    @classmethod
    def of(cls, kind: str, sizes: tuple[int, ...], prevalence: float) -> World:
        many = len(sizes)
        slope = np.linspace(-1.0, 1.0, many)
        odds, shift, apart = np.full(many, np.log(prevalence / (1 - prevalence))), np.zeros(many), np.full(many, APART)
        if kind == "other rates":
            odds = odds + slope
        elif kind == "shifted scores":
            shift = 0.7 * slope
        elif kind == "one apart":
            shift[0] = 1.5
        elif kind == "other slopes":
            apart = APART + 0.9 * slope
        name = f"{kind}, {prevalence:.0%}, {'/'.join(map(str, sizes))} labels"
        return cls(name, kind, sizes, 1 / (1 + np.exp(-odds)), shift, apart)

    def draw(self, rng: np.random.Generator) -> SegmentRows:
        code = np.repeat(np.arange(len(self.sizes)), self.sizes)
        labels = rng.random(len(code)) < self.rates[code]
        scores = rng.normal(size=len(code)) + self.shift[code] + labels * self.apart[code]
        # A label stands for its share of its segment's traffic, which is as large as the others'.
        rows = SegmentRows.of(labels, scores, code, segments=len(self.sizes))
        return rows.weighted(1 / np.array(self.sizes, dtype=np.float64)[code])

    def truth(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """True precision and recall of thresholds, shape (..., segments)."""
        from scipy.special import ndtr

        hits = (self.rates * ndtr(self.shift + self.apart - thresholds)).mean(-1)
        alarms = ((1 - self.rates) * ndtr(self.shift - thresholds)).mean(-1)
        return hits / np.maximum(hits + alarms, 1e-300), hits / self.rates.mean()


@dataclass(frozen=True)
class Outcome:
    """Of one cell, over its runs: recall gained at equal true precision by the thresholds per segment, whether offered
    or not, and by what is in force (one threshold where they are not offered); the share of runs that offer them."""

    world: World
    gained: float
    error: float
    in_force: float
    offered: float


def worlds() -> tuple[World, ...]:
    return tuple(World.of(kind, sizes, rate) for kind, sizes, rate in product(KINDS, SIZES, PREVALENCES))


def run_world(world: World, *, replications: int, rng: np.random.Generator) -> Outcome:
    """One cell, many times over."""
    precision, recall = world.truth(SCORES[:, None])
    gained, offered = np.zeros(replications), np.zeros(replications, dtype=bool)
    for replication in range(replications):
        rows = world.draw(rng)
        try:
            choice = choose_segments(rows, Policy("precision", TARGET), rng=rng, resamples=RESAMPLES)
        except BadInput:  # too few segments with enough labels: all have the common threshold
            continue
        thresholds = np.full(len(world.sizes), choice.common)
        thresholds[rows.enough] = choice.own
        true_precision, true_recall = world.truth(thresholds)
        # One threshold at the precision that the thresholds per segment truly have.
        gained[replication] = true_recall - recall[precision >= true_precision - 1e-9].max(initial=0.0)
        offered[replication] = choice.offered
    return Outcome(
        world,
        float(gained.mean()),
        float(gained.std() / np.sqrt(replications)),
        float(np.where(offered, gained, 0.0).mean()),
        float(offered.mean()),
    )


def measure(
    replications: int,
    *,
    seed: int = SEED,
    cells: Sequence[World] | None = None,
    on_progress: Callable[[int, int, str], None] = lambda done, total, step: None,
) -> Report:
    """Make the table of what thresholds per segment promise. `on_progress` hears of every cell as it begins."""
    cells = worlds() if cells is None else cells
    outcomes = []
    for number, world in enumerate(cells):
        on_progress(number, len(cells), world.name)
        rng = np.random.default_rng([seed, number])
        outcomes.append(run_world(world, replications=replications, rng=rng))
    return Report(replications, seed, tuple(_rows(outcomes, replications)), ())


def _rows(outcomes: Sequence[Outcome], replications: int) -> Iterator[Row]:
    promise, least = "recall at equal precision against one threshold", "≥ −.01"
    worst = min(outcomes, key=lambda outcome: outcome.gained)
    most = max(outcome.gained for outcome in outcomes)
    name = f"{promise}, worst of {len(outcomes)}"
    yield Row(name, least, worst.gained, worst.error, worst.gained, most, worst.world.name, worst.gained >= -0.01)
    force = [outcome.in_force for outcome in outcomes]
    lowest = int(np.argmin(force))
    yield Row(
        "  where only what is offered is in force",
        least,
        force[lowest],
        None,
        min(force),
        max(force),
        outcomes[lowest].world.name,
        force[lowest] >= -0.01,
    )
    null = [outcome for outcome in outcomes if outcome.world.kind == "alike"]
    if null:
        falsest = max(null, key=lambda outcome: outcome.offered)
        rate, lowest_rate = falsest.offered, min(outcome.offered for outcome in null)
        error = float(np.sqrt(rate * (1 - rate) / replications))
        name = f"false offers where segments are alike, worst of {len(null)}"
        yield Row(name, "≤ 5%", rate, error, lowest_rate, rate, falsest.world.name, rate <= 0.05)
    for kind in dict.fromkeys(outcome.world.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.world.kind == kind]
        for figure, shares in (
            ("recall gained", [outcome.gained for outcome in of_kind]),
            ("offered", [outcome.offered for outcome in of_kind]),
        ):
            where = f"mean of {len(of_kind)}"
            yield Row(f"  {kind}: {figure}", "", float(np.mean(shares)), None, min(shares), max(shares), where, None)

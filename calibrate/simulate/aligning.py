"""What `align compare` promises, measured where the truth is known: a prompt that changes nothing, and one that mends
a bias of the judge for one kind of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.simulate.targets import Report, Row
from calibrate.stats.aligning.gain import Gained, measure_gain

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Bools = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

SEED = 20261124
RECALL = 0.6
KIND = 0.3  # of the answers are of the kind that a biased judge scores too high
NOISE = 1.0  # of a judge, beside a distance of SIGNAL between the verdicts
SIGNAL = 1.6
ALIKE = 0.6  # correlation of a judge's noise under two prompts
GROUP = 4  # answers that share their sources, in grouped traffic
BIAS = 2.0  # standard deviations of the noise


@dataclass(frozen=True)
class World:
    """Labelled traffic and how a judge replies: in log odds, in eleven steps, or by yes and no alone."""

    name: str
    labels: int
    hallucinated: float = 0.25
    steps: int = 0
    grouped: bool = False


NULL = (
    World("80 labels", 80),
    World("300 labels", 300),
    World("300 labels, 8% hallucinated", 300, hallucinated=0.08),
    World("300 labels, groups of 4", 300, grouped=True),
    World("300 labels, eleven steps", 300, steps=11),
    World("300 labels, yes or no", 300, steps=2),
)
PLANTED = (
    World("150 labels", 150),
    World("300 labels", 300),
    World("300 labels, groups of 4", 300, grouped=True),
    World("600 labels", 600),
)
ENOUGH = 600  # labels that find a mended bias of BIAS


def measure(
    replications: int,
    *,
    seed: int = SEED,
    null: Sequence[World] = NULL,
    planted: Sequence[World] = PLANTED,
    on_progress: Callable[[int, int, str], None] = lambda done, total, step: None,
) -> Report:
    """Make the table of what `align compare` promises. `on_progress` hears of every world as it begins."""
    rows: list[Row] = []
    for number, world in enumerate((*null, *planted)):
        on_progress(number, len(null) + len(planted), world.name)
        rng = np.random.default_rng([seed, number])
        rows += (
            _measure_null(world, replications, rng) if number < len(null) else _measure_power(world, replications, rng)
        )
    return Report(replications, seed, tuple(rows), ())


def _measure_null(world: World, runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """A prompt under which the judge is as good as before, with noise of its own."""
    verdicts = [_compare(world, BIAS, BIAS, rng) for _ in range(runs)]
    better = float(np.mean([verdict == Gained.BETTER for verdict in verdicts]))
    worse = float(np.mean([verdict == Gained.WORSE for verdict in verdicts]))
    yield _make_row(f"a prompt that changes nothing is called better: {world.name}", "≤ 5%", better, runs, (0, 0.05))
    yield _make_row("  is called worse", "≤ 5%", worse, runs, (0, 0.05))


def _measure_power(world: World, runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """A prompt that takes away what the judge adds to one kind of answers."""
    for bias in (BIAS / 2, BIAS):
        share = float(np.mean([_compare(world, bias, 0.0, rng) == Gained.BETTER for _ in range(runs)]))
        aim = (0.8, 1.0) if bias == BIAS and world.labels >= ENOUGH else None
        name = f"a mended bias of {bias:g} SD for {KIND:.0%} of answers is called better: {world.name}"
        yield _make_row(name, "≥ 80%" if aim else "", share, runs, aim)


def _compare(world: World, bias: float, left: float, rng: np.random.Generator) -> Gained:
    """One comparison: the present prompt has `bias`, the new one has `left` of it."""
    groups = np.arange(world.labels) // (GROUP if world.grouped else 1)
    many = int(groups.max()) + 1
    # Answers of a group share their sources: mostly the verdict, the kind, and part of the judge's error.
    own = rng.random(world.labels) < (0.5 if world.grouped else 1.0)
    truth = np.where(own, rng.random(world.labels), rng.random(many)[groups]) < world.hallucinated
    kind = (rng.random(many) < KIND)[groups] if world.grouped else rng.random(world.labels) < KIND
    shared = rng.normal(size=world.labels)
    if world.grouped:
        shared = np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=many)[groups]
    scores = [
        _reply(
            world,
            SIGNAL * truth
            + each * kind
            + NOISE * (np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * rng.normal(size=world.labels)),
        )
        for each in (bias, left)
    ]
    return measure_gain(truth, *scores, recall=RECALL, rng=rng, groups=list(groups)).verdict


def _reply(world: World, odds: Floats) -> Floats:
    chance = 1 / (1 + np.exp(-(odds - SIGNAL / 2)))
    return np.round(chance * (world.steps - 1)) if world.steps else chance


def _make_row(name: str, target: str, share: float, runs: int, aim: tuple[float, float] | None) -> Row:
    error = float(np.sqrt(share * (1 - share) / runs))
    return Row(name, target, share, error, share, share, "", None if aim is None else aim[0] <= share <= aim[1])

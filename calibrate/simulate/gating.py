"""What `gate` promises, measured where the truth is known: false passes, false alarms, power, labels it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product

import numpy as np

from calibrate.simulate.scenarios import Ints, Traffic, at_threshold
from calibrate.simulate.targets import Report, Row
from calibrate.simulate.trials import design_of, draw
from calibrate.stats.intervals.sweep_intervals import Figures, figures
from calibrate.stats.monitoring.non_inferiority import (
    ALPHA,
    FELL,
    Change,
    Figure,
    bounded,
    compare,
    exactly,
    forecast,
    one_sided,
    planned,
)
from calibrate.stats.sweep.sweep import sweep

SEED = 20261123
FIGURES = ("recall", "precision")
LABELS = (300, 1000)  # of the release's sample and of the one that is tested
MARGINS = (0.05, 0.15)
MOST = 6000  # labels of a sample to come: more take minutes
DETECTORS = 3
AT_LEAST = 100  # labels of a draw that has some in every stratum
OFTENER = 4  # replications of the worst cell, measured anew
FEWEST = 15  # requests without which the share of them that was told says nothing
_UNASKED = -2  # open, and no number of labels was asked for


@dataclass(frozen=True)
class World:
    """Traffic at the release, how labels are drawn from it, and what the threshold truly does."""

    prevalence: float
    design: str
    recall: float
    precision: float

    def traffic(self, *, recall_drop: float = 0.0, precision_drop: float = 0.0) -> Traffic:
        return at_threshold(self.prevalence, self.recall - recall_drop, self.precision - precision_drop)


WORLDS = tuple(
    World(prevalence, design, recall, precision)
    for prevalence in (0.05, 0.2)
    for design in ("octave", "random")
    for recall, precision in ((0.6, 0.75), (0.85, 0.9))
)


def measure(
    replications: int,
    *,
    seed: int = SEED,
    worlds: Sequence[World] = WORLDS,
    labels: Sequence[int] = LABELS,
    on_progress: Callable[[int, int, str], None] = lambda done, total, step: None,
) -> Report:
    """Make the table of what `gate` promises. `on_progress` hears of every part as it begins."""
    rows: list[Row] = []
    parts = (_false_passes, _false_alarms, _power, _follow_requests, _several)
    for number, part in enumerate(parts):
        on_progress(number, len(parts), (part.__doc__ or "").split(".")[0])
        rows += part(worlds, labels, replications, np.random.default_rng([seed, number]))
    return Report(replications, seed, tuple(rows), ())


def _false_passes(worlds: Sequence[World], labels: Sequence[int], runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Figures that fell by exactly the margin."""
    for stated in (False, True):
        promise = "promised as a number" if stated else "promised as measured"
        for figure in FIGURES:
            once, twice = [], []
            for world, margin, n in product(worlds, MARGINS, labels):
                after = world.traffic(**{f"{figure}_drop": margin})
                look = partial(_look_twice, world, after, n, margin, rng=rng, stated=stated)
                where = f"{after.name}, {world.design}, {n} labels, margin {margin:g}"
                first, second = look(runs=runs)
                once.append(_Cell(float((first == 1).mean()), where, partial(_again, look, 0, 1)))
                twice.append(_Cell(float((second == 1).mean()), where, partial(_again, look, 1, 1)))
            yield _worst(f"false pass: {figure}, {promise}, fell by the margin", once, runs)
            yield _worst("  with a second look, after the labels asked for", twice, runs)


def _false_alarms(worlds: Sequence[World], labels: Sequence[int], runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """False alarms: figures that fell by exactly the margin, or not at all."""
    for drop, name in ((1.0, "both figures fell by the margin, no more"), (0.0, "nothing changed")):
        cells = []
        for world, margin, n in product(worlds, MARGINS, labels):
            after = world.traffic(recall_drop=drop * margin, precision_drop=drop * margin)
            look = partial(_look_twice, world, after, n, margin, rng=rng, stated=True)
            where = f"{after.name}, {world.design}, {n} labels, margin {margin:g}"
            cells.append(_Cell(float((look(runs=runs)[1] == -1).mean()), where, partial(_again, look, 1, -1)))
        yield _worst(f'wrong "fell" in two looks: {name}', cells, runs)


@dataclass(frozen=True)
class _Cell:
    """A share of replications, where it was measured, and how to measure it anew with so many."""

    rate: float
    where: str
    again: Callable[[int], float]


def _again(look: Callable[..., tuple[Ints, Ints]], place: int, decision: int, runs: int) -> float:
    return float((look(runs=runs)[place] == decision).mean())


def _worst(name: str, cells: list[_Cell], runs: int) -> Row:
    """The worst cell, measured anew with OFTENER times as many replications: the worst of many is so by chance, too."""
    worst = max(cells, key=lambda cell: cell.rate)
    rate = worst.again(OFTENER * runs)
    error = float(np.sqrt(rate * (1 - rate) / (OFTENER * runs)))
    least = min(cell.rate for cell in cells)
    return Row(f"{name}, worst of {len(cells)}", "≤ 5%", rate, error, least, worst.rate, worst.where, rate <= 0.05)


def _power(worlds: Sequence[World], labels: Sequence[int], runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Power at the planned number of labels."""
    few = max(runs // 4, 25)
    for stated in (True, False):
        held: list[tuple[float, str]] = []
        fallen: list[tuple[float, str]] = []
        for world, margin, n in product(worlds, MARGINS, labels):
            before, after = world.traffic(), world.traffic(recall_drop=2 * margin)
            plan = _plan(world, n, margin, rng, stated=stated)
            if plan is None or plan > MOST:
                continue
            where = f"{before.name}, {world.design}, margin {margin:g}: {plan:,} labels"
            for traffic, rates, decision in ((before, held, 1), (after, fallen, -1)):
                release = _Drawn(before, world.design, n, few, rng)
                decided = _decide(_test(release, _Drawn(traffic, world.design, plan, few, rng), world, margin, stated))
                rates.append((float((decided == decision).mean()), where))
        promise = "promised as a number" if stated else "promised as measured"
        yield _mean(f"holds at the planned labels, nothing changed, {promise}", "75–95%", held, (0.75, 0.95))
        yield _mean("  fell, where recall fell by twice the margin", "", fallen, None)


def _follow_requests(
    worlds: Sequence[World], labels: Sequence[int], runs: int, rng: np.random.Generator
) -> Iterator[Row]:
    """Labels that a test asks for, followed."""
    shares, requested, answered = [], 0, 0
    rare = np.zeros(2, dtype=int)  # requests of cells that have too few for a share of their own, and answers to them
    for world, margin, n in product(worlds, MARGINS, labels):
        for drop in (0.0, 2.0):
            after = world.traffic(recall_drop=drop * margin)
            first, second = _look_twice(world, after, n, margin, runs=max(runs // 4, 25), rng=rng, stated=True)
            requests = (first == 0) & (second != _UNASKED)
            answers = requests & (second != 0)
            requested, answered = requested + int(requests.sum()), answered + int(answers.sum())
            if requests.sum() >= FEWEST:
                shares.append(float(answers.sum() / requests.sum()))
            else:
                rare += (requests.sum(), answers.sum())
    if rare[0]:
        shares.append(float(rare[1] / rare[0]))
    share = answered / requested if requested else float("nan")
    low, high = (min(shares), max(shares)) if shares else (share, share)
    error = float(np.sqrt(share * (1 - share) / requested)) if requested else None
    yield Row(
        '"about N more would", followed: told',
        "70–90%",
        share,
        error,
        low,
        high,
        f"{requested:,} requests",
        0.7 <= share <= 0.9,
    )


def _several(worlds: Sequence[World], labels: Sequence[int], runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Several thresholds at once, of which one fell by the margin, or all did."""
    margin, n = MARGINS[-1], labels[-1]
    for drops, decision, name in (
        (
            (0.0,) * (DETECTORS - 1) + (margin,),
            1,
            f"false pass: recall of one of {DETECTORS} thresholds fell by the margin",
        ),
        ((margin,) * DETECTORS, -1, f'wrong "fell": recall of all {DETECTORS} fell by the margin, no more'),
    ):
        cells = []
        for world in worlds:
            look = partial(_test_several, world, drops, n, margin, rng)
            where = f"{world.traffic().name}, {world.design}, {n} labels, margin {margin:g}"
            share = partial(_share, look, decision)
            cells.append(_Cell(share(runs), where, share))
        yield _worst(name, cells, runs)


def _share(look: Callable[[int], Ints], decision: int, runs: int) -> float:
    return float((look(runs) == decision).mean())


def _test_several(
    world: World, drops: Sequence[float], n: int, margin: float, rng: np.random.Generator, runs: int
) -> Ints:
    """Decisions of a gate of several thresholds, each on labels of its own."""
    release, family = _Drawn(world.traffic(), world.design, n, runs, rng), len(FIGURES) * len(drops)
    columns = [
        _test(release, _Drawn(world.traffic(recall_drop=drop), world.design, n, runs, rng), world, margin, True, family)
        for drop in drops
    ]
    return _decide([list(chain.from_iterable(parts)) for parts in zip(*columns, strict=True)])


class _Drawn:
    """Labels of every replication, and further ones of the same design."""

    def __init__(self, traffic: Traffic, design: str, labels: int, runs: int, rng: np.random.Generator) -> None:
        self.traffic, self.design, self.labels, self._rng = traffic, design, labels, rng
        self.rows = list(draw(traffic, labels, design=design, replications=runs, rng=rng).rows)

    def more(self, run: int, labels: int) -> Ints:
        """The rows of a replication with so many more."""
        # Of few labels a stratum would get none: they are taken from a larger draw, in random order, as a queue is.
        further = draw(self.traffic, max(labels, AT_LEAST), design=self.design, replications=1, rng=self._rng).rows[0]
        return np.concatenate([self.rows[run], self._rng.permutation(further)[:labels]])

    def figures(self, rows: Ints, *confidences: float) -> list[Figures]:
        traffic = self.traffic
        drawn = sweep(traffic.truth[rows], traffic.scores[rows], design=design_of(traffic, rows, self.design))
        return [figures(drawn, 0.0, confidence=confidence) for confidence in confidences]


def _look_twice(
    world: World, after: Traffic, n: int, margin: float, *, runs: int, rng: np.random.Generator, stated: bool
) -> tuple[Ints, Ints]:
    """Decisions of a first test; and those after what it asked for was labelled, where it was open and asked."""
    release, sample = _Drawn(world.traffic(), world.design, n, runs, rng), _Drawn(after, world.design, n, runs, rng)
    changes = _test(release, sample, world, margin, stated)
    first = _decide(changes)
    second = first.copy()
    for run in np.flatnonzero(first == 0):
        more = forecast(changes[run], n, rng=rng).more if all(change.now for change in changes[run]) else n
        second[run] = _UNASKED
        if more is not None and n + more <= MOST:
            rows = sample.more(int(run), more)
            again = _changes(release, release.rows[run], sample, rows, world, margin, stated, len(FIGURES))
            second[run] = _decide([again])[0]
    return first, second


def _plan(world: World, n: int, margin: float, rng: np.random.Generator, *, stated: bool) -> int | None:
    """The labels that one release of `n` labels plans for."""
    release = _Drawn(world.traffic(), world.design, n, 1, rng)
    (measured,) = release.figures(release.rows[0], 0.95)
    promises = []
    for name in FIGURES:
        figure = one_sided(getattr(measured, name))
        if figure is None:
            return None
        promises.append((figure, exactly(getattr(world, name)) if stated else figure))
    return planned(promises, [margin] * len(FIGURES), [n] * len(FIGURES))


def _test(
    release: _Drawn, sample: _Drawn, world: World, margin: float, stated: bool, family: int = len(FIGURES)
) -> list[list[Change]]:
    return [
        _changes(release, before, sample, after, world, margin, stated, family)
        for before, after in zip(release.rows, sample.rows, strict=True)
    ]


def _changes(
    release: _Drawn, before: Ints, sample: _Drawn, after: Ints, world: World, margin: float, stated: bool, family: int
) -> list[Change]:
    """Recall and precision of one replication against what its release promised."""
    levels = (ALPHA, FELL / family)
    measured = None if stated else release.figures(before, 0.95)[0]
    now = sample.figures(after, *(1 - 2 * alpha for alpha in levels))
    changes = []
    for name in FIGURES:
        then = [_promise(measured, world, name, alpha) for alpha in levels]
        single, widest = (bounded(getattr(each, name)) for each in now)
        if then[0] is not None and then[1] is not None:
            pair = None if single is None or widest is None else (single, widest)
            changes.append(compare((then[0], then[1]), pair, margin))
    return changes


def _promise(measured: Figures | None, world: World, name: str, alpha: float) -> Figure | None:
    """The truth as a number, or what was measured."""
    if measured is None:
        return exactly(getattr(world, name))
    return one_sided(getattr(measured, name), alpha=alpha)


def _decide(changes: Sequence[Sequence[Change]]) -> Ints:
    """1 where all figures hold, -1 where any fell, 0 where too few labels tell."""
    return np.array(
        [-1 if any(c.fell for c in run) else int(bool(run) and all(c.holds for c in run)) for run in changes]
    )


def _mean(name: str, target: str, rates: list[tuple[float, str]], aim: tuple[float, float] | None) -> Row:
    mean = float(np.mean([rate for rate, _ in rates])) if rates else float("nan")
    low, high = (min(rates), max(rates)) if rates else ((mean, ""), (mean, ""))
    met = None if aim is None or not rates else aim[0] <= mean <= aim[1]
    return Row(f"{name}, mean of {len(rates)}", target, mean, None, low[0], high[0], f"lowest: {low[1]}", met)

"""Rechecks where the flagged traffic is not all alike: weeks that differ, and sources that bring many traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrate.simulate.targets import Row
from calibrate.stats.monitoring.eprocess import ALPHA, log_fell, log_holds
from calibrate.stats.sweep.design import Bools, Floats, Ints

TARGET = 0.7
A_WEEK = 60  # flagged traces
WEEKS = 8
BEFORE, NOW = 0.8, 0.5  # precision of the weeks before, and of the last one
FLAGGED, LABELS = 2000, 600  # of a world of busy sources
BUSY = 4  # sources


@dataclass(frozen=True)
class World:
    """A `share` of what is flagged comes from BUSY sources of precision `busy`, each other trace from one of its own,
    of precision `rest`."""

    share: float
    busy: float
    rest: float

    @property
    def name(self) -> str:
        return f"{self.share:.0%} of flags from {BUSY} sources at {self.busy:g}, the rest at {self.rest:g}"


WORLDS = (World(0.2, 0.3, 0.8), World(0.3, 0.2, 0.88))
BETTER = World(0.3, 1.0, 0.65)


def mixed_periods(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Rechecks of traffic whose precision fell this week."""
    before = rng.random((runs, (WEEKS - 1) * A_WEEK)) < BEFORE
    now = rng.random((runs, A_WEEK)) < NOW
    for period, pool, target in (
        ("the last week", now, "≤ 5%"),
        ("  all since the release", np.hstack([before, now]), ""),
    ):
        holds = _decide(rng.permuted(pool, axis=1)) == 1
        name = f'wrong "holds" where precision fell from {BEFORE:g} to {NOW:g} in week {WEEKS}: {period}'
        yield _rate(name if target else period, target, holds)
    # The week itself may be mixed: what is said of it is of all its days.
    days = np.hstack([rng.random((runs, 34)) < BEFORE, rng.random((runs, A_WEEK - 34)) < NOW])
    wrong = (_decide(rng.permuted(days, axis=1)) == 1) & (days.mean(axis=1) <= TARGET)
    yield _rate('wrong "holds" of a week in which it fell after four days', "≤ 5%", wrong)


def busy_sources(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Rechecks where a few sources bring many of the flagged traces."""
    for world in WORLDS:
        decided, alone, low = _recheck(world, runs, rng)
        yield _rate(f'wrong "holds": {world.name}', "≤ 5%", (decided == 1) & low)
        yield _rate("  the first of each source alone", "", (alone == 1) & low)
        yield _rate(f'wrong "fell below": {world.name}', "≤ 5%", (decided == -1) & ~low)
    decided, alone, low = _recheck(BETTER, runs, rng)
    yield _rate(f'wrong "fell below": {BETTER.name}', "≤ 5%", (decided == -1) & ~low)
    yield _rate("  the first of each source alone", "", (alone == -1) & ~low)


def _recheck(world: World, runs: int, rng: np.random.Generator) -> tuple[Ints, Ints, Bools]:
    """What is decided on all labels, what on the first of each source alone, and whether the precision of the flagged
    traces is below the target."""
    n = round(world.share * FLAGGED)
    sources = np.concatenate([np.arange(n) % BUSY, BUSY + np.arange(FLAGGED - n)])
    verdicts = rng.random((runs, FLAGGED)) < np.where(sources < BUSY, world.busy, world.rest)
    order = rng.permuted(np.tile(np.arange(FLAGGED), (runs, 1)), axis=1)[:, :LABELS]
    drawn, of = np.take_along_axis(verdicts, order, axis=1), sources[order]
    first = of >= BUSY
    for source in range(BUSY):
        place = of == source
        first[np.flatnonzero(place.any(axis=1)), place.argmax(axis=1)[place.any(axis=1)]] = True
    return _decide(drawn, first), _decide(drawn, first, alone=True), verdicts.mean(axis=1) < TARGET


def _decide(verdicts: Bools, first: Bools | None = None, *, alone: bool = False) -> Ints:
    """1 for each row of verdicts that is decided as "holds", -1 as "fell below", 0 for neither."""
    n = np.arange(1, verdicts.shape[1] + 1)
    k = np.cumsum(verdicts, axis=1)
    holds, fell = log_holds(k, n, TARGET), log_fell(k, n, TARGET)
    if first is not None:
        hits, sources = np.cumsum(verdicts & first, axis=1), np.cumsum(first, axis=1)
        by_source = log_holds(hits, sources, TARGET)
        holds = by_source if alone else np.minimum(holds, by_source)
        fell = log_fell(hits, sources, TARGET) if alone else fell
    when_holds, when_fell = (_first_at(each, -np.log(ALPHA)) for each in (holds, fell))
    return np.asarray(np.sign(when_fell - when_holds), dtype=np.int64)


def _first_at(path: Floats, bar: float) -> Ints:
    """The first place at which each path reaches the bar; its length where none does."""
    over = path >= bar
    return np.asarray(np.where(over.any(axis=1), over.argmax(axis=1), path.shape[1]))


def _rate(name: str, target: str, hits: Bools) -> Row:
    rate = float(hits.mean())
    error = float(np.sqrt(rate * (1 - rate) / len(hits)))
    return Row(name, target, rate, error, rate, rate, f"{len(hits):,} rechecks", rate <= 0.05 if target else None)

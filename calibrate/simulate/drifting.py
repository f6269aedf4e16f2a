"""What `drift` and `recheck` promise, measured where the truth is known: false alarms, power, labels to a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrate.simulate.rechecking import busy_sources, mixed_periods
from calibrate.simulate.targets import Report, Row
from calibrate.stats.fitting.prevalence import estimate_prevalence
from calibrate.stats.monitoring.drift import Shift, Window, compare_windows, judge_shifts
from calibrate.stats.monitoring.eprocess import ALPHA, log_fell, log_holds

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

SEED = 20261121
TARGET = 0.7
REFERENCE = 2000  # traces of the window before: what `drift` compares at most
SIZES = (300, 2000)
DETECTORS = 8  # of a week
GROUP = 4  # answers that share their sources, in grouped traffic
RATE = 0.05  # of traffic that the live threshold flags
LABELS = 2000  # of a path that is watched for false alarms
PATHS = 5  # paths of labels to a week of scores: they are cheap


@dataclass(frozen=True)
class Shape:
    """How scores are distributed: normal noise, standard deviation 1, made into scores."""

    name: str
    of: Callable[[Floats], Floats]


SHAPES = (
    Shape("normal", lambda z: z),
    Shape("skewed", lambda z: np.exp(z)),
    Shape("eleven values", lambda z: np.clip(np.round(5 + 2 * z), 0, 10)),
    Shape("two humps", lambda z: z + np.where(np.abs(z) > 1.3, 3.0, 0.0)),
)


def measure(
    replications: int,
    *,
    seed: int = SEED,
    on_progress: Callable[[int, int, str], None] = lambda done, total, step: None,
) -> Report:
    """Make the table of statistics.md's section on upgrades. `on_progress` hears of every part as it begins."""
    rows: list[Row] = []
    parts = (_measure_quiet_weeks, _measure_grouped_weeks, _measure_power, _sequential, _false_alarms, _prevalence,
             mixed_periods, busy_sources)  # fmt: skip
    for number, part in enumerate(parts):
        on_progress(number, len(parts), (part.__doc__ or "").split(".")[0])
        rows += part(replications, np.random.default_rng([seed, number]))
    return Report(replications, seed, tuple(rows), ())


def _measure_quiet_weeks(weeks: int, rng: np.random.Generator) -> Iterator[Row]:
    """Quiet weeks of eight detectors."""
    for n in SIZES:
        alarms = np.zeros(weeks)
        for week in range(weeks):
            shifts = [_compared(SHAPES[i % len(SHAPES)], n, rng=rng, tests=3 * DETECTORS) for i in range(DETECTORS)]
            alarms[week] = any(moved.any for moved in judge_shifts(shifts))
        yield _make_row(
            f"quiet weeks in which anything moved, {DETECTORS} detectors, n = {n:,}", "≤ 5%", alarms, 0, 0.05
        )


def _measure_grouped_weeks(weeks: int, rng: np.random.Generator) -> Iterator[Row]:
    """Quiet weeks of answers that share their sources."""
    weeks *= 3  # of one detector each: cheap
    for name, blocks, target in (("", True, "≤ 5%"), ("  the same, groups ignored", False, "")):
        alarms = np.zeros(weeks)
        for week in range(weeks):
            shift = _compared(SHAPES[week % len(SHAPES)], 400, rng=rng, tests=3, grouped=True, blocks=blocks)
            alarms[week] = judge_shifts([shift])[0].any
        label = name or f"quiet weeks in which anything moved, groups of {GROUP}, n = 400"
        yield _make_row(label, target, alarms, 0, 0.05)


def _measure_power(weeks: int, rng: np.random.Generator) -> Iterator[Row]:
    """Weeks in which scores moved."""
    for n, away in ((300, 0.3), (2000, 0.15)):
        seen = np.array([_hit(_compared(SHAPES[0], n, rng=rng, tests=3, away=away)) for _ in range(weeks)])
        yield _make_row(f"scores {away:g} SD higher are seen, n = {n:,}", "≥ 80%", seen, 0.8, 1)
    for n in SIZES:
        seen = np.zeros(weeks)
        for week in range(weeks):
            quiet = _compared(SHAPES[0], n, rng=rng, tests=3)
            seen[week] = _hit(_compared(SHAPES[0], n, rng=rng, tests=3, away=quiet.visible or 0.0))
        yield _make_row(f'a shift of "would have been seen" is seen, n = {n:,}', "70–90%", seen, 0.7, 0.9)
    moved = [judge_shifts([_compared(SHAPES[0], 2000, rng=rng, tests=3, wider=1.2)])[0] for _ in range(weeks)]
    wider = np.array([float(verdict.flags) for verdict in moved])
    yield _make_row("scores spread 20% wider flag more, n = 2,000: seen by the flag rate", "", wider, 0, 1)


def _sequential(weeks: int, rng: np.random.Generator) -> Iterator[Row]:
    """Labels until a recheck is decided."""
    cases = ((0.5, 40, 37), (0.6, 160, 159), (0.8, 120, 115), (0.9, 27, 26))
    for precision, most, before in cases:
        took, decided = _count_labels_to_decision(precision, PATHS * weeks, LABELS, rng)
        right = decided == np.sign(precision - TARGET)
        middle = float(np.median(np.where(right, took, LABELS + 1)))
        label = "fell below" if precision < TARGET else "holds"
        low, high = (float(q) for q in np.quantile(took, [0.1, 0.9]))
        name = f'median labels to "{label}" at a precision of {precision:g}, target {TARGET:g}'
        where = f"{before} before; lowest–highest: 10% and 90%"
        yield Row(name, f"≤ {most}", middle, None, low, high, where, middle <= most)


def _false_alarms(weeks: int, rng: np.random.Generator) -> Iterator[Row]:
    """Rechecks whose precision is exactly the target."""
    _, decided = _count_labels_to_decision(TARGET, PATHS * weeks, LABELS, rng)
    for way, label in ((-1, "fell below"), (1, "holds")):
        name = f'wrong "{label}" within {LABELS:,} labels at the target itself'
        yield _make_row(name, "≤ 5%", (decided == way).astype(np.float64), 0, 0.05)


def _prevalence(weeks: int, rng: np.random.Generator) -> Iterator[Row]:
    """Prevalence without labels."""
    missed = []
    mu = NormalDist().inv_cdf(0.85) * np.sqrt(2)
    for _ in range(weeks):
        truth = float(rng.choice([0.02, 0.05, 0.1, 0.2]))
        bad = rng.random(2000) < truth
        z = np.where(bad, mu, 0.0) + rng.standard_normal(2000)
        mapped = 1 / (1 + 9 * np.exp(mu**2 / 2 - mu * z))  # the map of traffic with a tenth hallucinated
        missed.append(estimate_prevalence(mapped, 0.1).value - bad.mean())
    rmse = float(np.sqrt(np.mean(np.square(missed))))
    name, where = "RMSE of the prevalence without labels, n = 2,000, AUROC .85", "exact map; .024 before"
    yield Row(name, "≤ .024", rmse, None, float(min(missed)), float(max(missed)), where, rmse <= 0.024)


def _compared(
    shape: Shape,
    n: int,
    *,
    rng: np.random.Generator,
    tests: int,
    away: float = 0.0,
    wider: float = 1.0,
    grouped: bool = False,
    blocks: bool = True,
) -> Shift:
    """A window of REFERENCE traces against one of n; 2% of them could not be scored."""
    sides = []
    for size, shift, spread in ((REFERENCE, 0.0, 1.0), (n, away, wider)):
        groups = np.arange(size) // GROUP if grouped else None
        z = rng.standard_normal(size)
        if groups is not None:
            z = np.sqrt(0.5) * (z + rng.standard_normal(size)[groups])
        scores = np.asarray(shape.of(shift + spread * z), dtype=np.float64)
        scores[rng.random(size) < 0.02] = np.nan
        sides.append(Window(scores, groups if blocks else None))
    threshold = float(shape.of(np.array([NormalDist().inv_cdf(1 - RATE)]))[0])
    return compare_windows(*sides, threshold=threshold, flag_when="above", rng=rng, tests=tests)


def _hit(shift: Shift) -> float:
    return float(judge_shifts([shift])[0].scores)


def _count_labels_to_decision(
    precision: float, paths: int, labels: int, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    """The labels that each path took, one more than there are for one that was not decided, and which way: 1 holds, -1
    fell below."""
    took, way = np.full(paths, labels + 1.0), np.zeros(paths, dtype=np.int64)
    k, wealth = np.zeros(paths, dtype=np.int64), -np.log(ALPHA)
    for n in range(1, labels + 1):
        k += rng.random(paths) < precision
        counts = np.arange(n + 1)
        holds, fell = log_holds(counts, n, TARGET) >= wealth, log_fell(counts, n, TARGET) >= wealth
        fresh = way == 0
        way[fresh & holds[k]], way[fresh & fell[k]] = 1, -1
        took[fresh & (way != 0)] = n
        if way.all():
            break
    return took, way


def _make_row(name: str, target: str, hits: Floats, low: float, high: float) -> Row:
    rate = float(hits.mean())
    error = float(np.sqrt(rate * (1 - rate) / len(hits)))
    met = low <= rate <= high if target else None
    return Row(name, target, rate, error, rate, rate, f"{len(hits):,} replications", met)

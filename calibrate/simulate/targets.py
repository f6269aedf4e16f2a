"""The targets table: what the statistics promise, and what they were measured to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.simulate.cells import Cell, Method, cell, reachable
from calibrate.simulate.intervals import area_coverage, coverage, labels_like, misses
from calibrate.simulate.promises import calibrate_chances, many_attempts, triage
from calibrate.simulate.scenarios import Traffic, grid, stress

LABELS = 300
SEED = 20261116
RANDOM_SIZES = (300, 1000, 3000, 9000)
OFTENER, AREAS_OFTENER = 8, 2  # replications of an interval for one of a certificate: the band is narrow
NAMES = {
    "precision": "precision",
    "recall": "recall",
    "fpr": "the false-positive rate",
    "flag_rate": "the flag rate",
    "auroc": "AUROC",
    "average_precision": "average precision",
}
NEEDED_FROM = 30  # failed attempts that asked for labels, without which the share of them that succeeds says nothing


@dataclass(frozen=True)
class Row:
    """One row of the table: a worst, mean or median over scenarios, and the lowest and highest of them.

    `error`: the Monte Carlo standard error of `measured`, None where it has none that is simple. `met`: whether the
    target is met as measured, None for what is there for comparison.
    """

    name: str
    target: str
    measured: float
    error: float | None
    low: float
    high: float
    where: str
    met: bool | None


@dataclass(frozen=True)
class Report:
    replications: int
    seed: int
    rows: tuple[Row, ...]
    cells: tuple[Cell, ...]


def measure(
    replications: int,
    *,
    seed: int = SEED,
    labels: int = LABELS,
    traffic: Sequence[Traffic] | None = None,
    on_progress: Callable[[int, int, str], None] = lambda done, total, step: None,
) -> Report:
    """Make the whole table. `traffic`: the scenarios, default all; `on_progress` hears of each as it begins."""
    scenarios = list(traffic) if traffic is not None else [*grid(), *stress()]
    ours, others, again = [], [], []
    for number, each in enumerate(scenarios):
        on_progress(number, len(scenarios), each.name)
        rng = np.random.default_rng([seed, number])
        ours.append(cell(each, replications=replications, labels=labels, rng=rng))
        others.append(cell(each, replications=replications, labels=labels, rng=rng, method="published"))
        if each.kind == "grid":
            other: Method = "shipped, random stage A"
            others.append(cell(each, replications=max(replications // 4, 10), labels=labels, rng=rng, method=other))
        if each.kind == "plateau" or (each.kind in ("grid", "dip") and reachable(each)):
            again.append(cell(each, replications=max(replications // 2, 10), labels=labels // 2, rng=rng, follow=True))
    on_progress(len(scenarios), len(scenarios), "intervals, the naive choice and the bounded strength")
    rows = [
        *_summarise_certified(ours, others),
        *_summarise_attempts(again),
        *_measure_promises(scenarios, replications, labels, seed),
        *_measure_intervals(scenarios, replications, labels, seed),
        *_measure_strengths(scenarios, replications, labels, seed),
    ]
    return Report(replications, seed, tuple(rows), (*ours, *others, *again))


def _summarise_certified(ours: Sequence[Cell], others: Sequence[Cell]) -> Iterator[Row]:
    published = [cell for cell in others if cell.method == "published"]
    drawn = [cell for cell in others if cell.method == "shipped, random stage A"]
    yield from _summarise_violations("violations of a certified threshold", ours)
    grid_name, dip_name = (
        "certified recall, share of the oracle's: grid",
        "certified recall, share of the oracle's: dips",
    )
    yield from _summarise_shares(grid_name, [cell for cell in ours if cell.kind == "grid"], least=0.8)
    for spread in ("1.0", "1.5", "2.0"):
        part = [cell for cell in ours if cell.kind == "grid" and cell.name.endswith(f"spread {spread}")]
        yield from _summarise_shares(f"  of these, spread {spread}", part)
    yield from _summarise_shares(
        f"  {grid_name}, published method", [cell for cell in published if cell.kind == "grid"]
    )
    yield from _summarise_shares(f"  {grid_name}, stage A drawn at random", drawn)
    yield from _summarise_shares(dip_name, [cell for cell in ours if cell.kind == "dip"], least=0.5)
    yield from _summarise_shares(f"  {dip_name}, published method", [cell for cell in published if cell.kind == "dip"])


def _summarise_attempts(again: Sequence[Cell]) -> Iterator[Row]:
    name = '"need N more labels", followed: certified'
    yield from _summarise_followed(name, again, aim=(0.7, 0.9))
    yield from _summarise_followed(
        "  of these, traffic that has such a threshold", [c for c in again if c.kind != "plateau"]
    )
    yield from _summarise_followed("  of these, plateaus", [c for c in again if c.kind == "plateau"])
    yield from _summarise_violations("violations over both attempts", again)


def _summarise_followed(name: str, cells: Sequence[Cell], *, aim: tuple[float, float] | None = None) -> Iterator[Row]:
    requests = sum(cell.requests for cell in cells)
    if requests < NEEDED_FROM:
        return
    share = sum(cell.followed for cell in cells) / requests
    target = f"{100 * aim[0]:.0f}–{aim[1]:.0%}" if aim else ""
    each = [cell.followed / cell.requests for cell in cells if cell.requests >= NEEDED_FROM] or [share]
    yield Row(
        name,
        target,
        share,
        _standard_error(share, requests),
        min(each),
        max(each),
        f"{requests:,} failed attempts with half the labels",
        aim[0] <= share <= aim[1] if aim else None,
    )


def _measure_promises(scenarios: Sequence[Traffic], replications: int, labels: int, seed: int) -> Iterator[Row]:
    rng = np.random.default_rng([seed, 3000])
    predicted = [each for each in scenarios if each.kind in ("grid", "dip", "two detectors")]
    bins = calibrate_chances(predicted, replications=max(replications // 4, 10), labels=labels, rng=rng)
    if bins:
        gaps = [each.gap for each in bins]
        name = f"predicted chance against certificates, worst tenth of {len(bins)}"
        where = f"{len(predicted)} scenarios and plateaus of .5 to .9"
        yield Row(name, "≤ 0.10", max(gaps), None, min(gaps), max(gaps), where, max(gaps) <= 0.1)
    worlds = (
        ("violations where on-call dismissed half of the false alarms", "drawn from what nobody labelled",
         triage(replications=replications, labels=labels, rng=rng)),
        ("violations of any of ten attempts at a true .695", "each with a 5% of its own",
         many_attempts(replications=max(replications, 1000), rng=rng)),
    )  # fmt: skip
    for name, other, (rate, without) in worlds:
        yield Row(name, "≤ 5%", rate, _standard_error(rate, replications), rate, rate, "", rate <= 0.05)
        yield Row(f"  {other}", "", without, _standard_error(without, replications), without, without, "", None)


def _summarise_violations(name: str, cells: Sequence[Cell]) -> Iterator[Row]:
    if cells:
        worst = max(cells, key=lambda cell: cell.violations)
        rate, least = worst.violations, min(cell.violations for cell in cells)
        error = _standard_error(rate, worst.replications)
        yield Row(f"{name}, worst of {len(cells)}", "≤ 5%", rate, error, least, rate, worst.name, rate <= 0.05)


def _summarise_shares(name: str, cells: Sequence[Cell], least: float | None = None) -> Iterator[Row]:
    counted = [(cell.recall_share, cell.recall_error, cell.name) for cell in cells if cell.recall_share is not None]
    if counted:
        mean = float(np.mean([share for share, _, _ in counted]))
        error = float(np.sqrt(np.sum([each**2 for _, each, _ in counted])) / len(counted))
        lowest = min(counted)
        where = f"mean of {len(counted)}; lowest: {lowest[2]}"
        target = "" if least is None else f"≥ {least:.2f}"
        yield Row(
            name, target, mean, error, lowest[0], max(counted)[0], where, None if least is None else mean >= least
        )


def _measure_intervals(scenarios: Sequence[Traffic], replications: int, labels: int, seed: int) -> Iterator[Row]:
    aimed_at = [
        traffic
        for traffic in scenarios
        if traffic.kind == "grid" and traffic.name.startswith(("2%", "10%")) and reachable(traffic)
    ]
    unaimed = [traffic for traffic in scenarios if traffic.kind in ("two detectors", "abstentions")]
    held: dict[tuple[str, bool], list[tuple[float, str]]] = {}
    saved = []
    for number, traffic in enumerate((*aimed_at, *unaimed)):
        rng = np.random.default_rng([seed, 1000 + number])
        measured = coverage(traffic, n=labels, design="octave", replications=OFTENER * replications, rng=rng)
        often = AREAS_OFTENER * replications
        areas = area_coverage(traffic, n=labels, design="octave", replications=often, rng=rng)
        for figure, share in {**measured.held, **areas}.items():
            held.setdefault((figure, traffic.kind == "grid"), []).append((share, traffic.name))
        if traffic.name.startswith("2%"):
            few = min(replications, 300)
            widths = [coverage(traffic, n=n, design="random", replications=few, rng=rng).width for n in RANDOM_SIZES]
            saved.append(labels / labels_like(np.array(widths), np.array(RANDOM_SIZES, dtype=float), measured.width))
    if saved:
        middle, name = float(np.median(saved)), "labels for one width of precision's interval at 2%, octave to random"
        where = f"median of {len(saved)} cells, at the oracle's cut"
        yield Row(name, "≤ 0.10", middle, None, min(saved), max(saved), where, middle <= 0.1)
    for (figure, aimed), shares in held.items():
        low, high = min(shares), max(shares)
        mean = float(np.mean([share for share, _ in shares]))
        where = f"mean of {len(shares)}; lowest: {low[1]}; highest: {high[1]}"
        name = f"coverage of 95% intervals of {NAMES[figure]}, "
        if aimed:
            met = low[0] >= 0.93 and high[0] <= 0.985
            yield Row(f"{name}2% and 10%", ".93–.985", mean, None, low[0], high[0], where, met)
        else:
            yield Row(f"  {name}strata of several detectors", "", mean, None, low[0], high[0], where, None)


def _measure_strengths(scenarios: Sequence[Traffic], replications: int, labels: int, seed: int) -> Iterator[Row]:
    chosen = [traffic for traffic in scenarios if traffic.kind in ("plateau", "dip") or reachable(traffic)]
    results = []
    for number, traffic in enumerate(chosen):
        rng = np.random.default_rng([seed, 2000 + number])
        results.append((misses(traffic, n=labels, design="octave", replications=replications, rng=rng), traffic.name))
    if results:
        worst, where = max((share.bounded, name) for share, name in results)
        least = min(share.bounded for share, _ in results)
        name = f"violations of a bounded threshold, worst of {len(results)}"
        yield Row(name, "≤ 5%", worst, _standard_error(worst, replications), least, worst, where, worst <= 0.05)
        naive = [share.measured for share, _ in results]
        name = "a measured threshold (the naive rule) is truly below its target"
        yield Row(name, "", float(np.mean(naive)), None, min(naive), max(naive), f"mean of {len(naive)}", None)


def _standard_error(share: float, n: int) -> float:
    return float(np.sqrt(share * (1 - share) / n))

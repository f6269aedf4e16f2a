"""The store at size: every query of the pages at 100,000 traces and at many more, draws, imports.

    python tests/bench/bench_size.py [--postgresql 1000000] [--sqlite 1000000] [--folder DIR] [--picture FILE.svg]

Stores of 100,000 traces, of ten times as many, and so on up to the given size are generated in the database, with
scores of three detectors for every trace, labels and statistics. Each query runs a few times on each; the table has
medians, and the growth from the smallest store to the largest. What must read all is marked: its growth is that of the
store. 0 leaves a database out.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import size_store
from sqlalchemy import func, select

from calibrate.ingest import import_file
from calibrate.types import TraceFilter
from calibrate.workflow.sampling import sample
from calibrate.workflow.upgrade import models_seen
from db import Store, open_store
from db.listing.lines import ScoreBand
from db.tables import TraceRow

SMALL, ROUNDS, IMPORTED = 100_000, 5, 50_000
NOW = size_store.NOW
WEEK = TraceFilter(since=NOW - timedelta(days=7), until=NOW, undated=False)
MONTH = TraceFilter(since=NOW - timedelta(days=30), undated=False)
ALL = TraceFilter()
GROWTH, PAGE_SECONDS, DRAW_RATIO, OCTAVE_SECONDS, OCTAVE_GB = 2.0, 1.0, 3.0, 60.0, 2.0
IMPORT_RATE, AGAIN = 5_000, 3.0


@dataclass(frozen=True)
class Query:
    """A read of a page; `reads_all` says why it must read what the store holds."""

    page: str
    name: str
    call: Callable[[Store], object]
    reads_all: str = ""


Grid = dict[int, dict[Query, tuple[float, float]]]
"""By size: each query's median and slowest time, in seconds."""


def labelled(state: Any) -> TraceFilter:
    return TraceFilter(since=MONTH.since, undated=False, label=state)


QUERIES = [
    Query("This week", "all traces, counted", lambda s: s.traces.count(ALL)),
    Query("This week", "new this week, counted", lambda s: s.traces.count(WEEK)),
    Query("This week", "span and models", lambda s: s.traces.summary()),
    Query("This week", "a month by day", lambda s: s.traces.per_day(MONTH)),
    Query("This week", "unlabelled by day", lambda s: s.traces.per_day(labelled("unlabelled"))),
    Query("This week", "labelled by day", lambda s: s.traces.per_day(labelled("clean"))),
    Query("This week", "gold, counted", lambda s: s.labels.gold_counts()),
    Query("Traces", "newest 100", lambda s: s.lines.window(ALL, limit=100)),
    Query("Traces", "100 by score", lambda s: s.lines.window(ALL, band=ScoreBand(1), order="highest", limit=100)),
    Query("Traces", "100 by score of a week", lambda s: s.lines.window(WEEK, band=ScoreBand(1), order="highest")),
    Query("Traces", "lines, counted to 100,001", lambda s: s.lines.count(ALL, limit=100_001)),
    Query("Traces", "attributes offered", lambda s: s.traces.attribute_names()),
    Query("Traces", "one trace with its scores", lambda s: (s.traces.get(77), s.scores.of_trace(77))),
    Query("Draw", "the pool of a week", lambda s: sample.look(s, WEEK)),
    Query("Draw", "undated, counted", lambda s: s.traces.undated(ALL)),
    Query("Draw", "the usual design of a week", lambda s: sample.usual_design(s, WEEK)),
    Query("Draw", "a week by attribute", lambda s: s.traces.facet(WEEK, "channel"), "each trace's attributes"),
    Query("Queue", "a labeller's place", lambda s: s.labels.place(1, "ann")),
    Query("Disputes", "what several labelled", lambda s: s.labels.readings()),
    Query("Detect", "labelled, by outcome", lambda s: s.coverage.tallies(labelled=True)),
    Query("Detect", "labelled, by fields", lambda s: s.coverage.fields(labelled=True)),
    Query("Detect", "all, by outcome", lambda s: s.coverage.tallies(), "every score"),
    Query("Detect", "all, by fields", lambda s: s.coverage.fields(), "every trace"),
    Query("Tune", "labels beside scores", lambda s: s.scores.labelled(1)),
    Query("Tune", "configurations", lambda s: s.scores.configs(size_store.DETECTORS[0])),
    Query("Tune", "scores of a week", lambda s: s.scores.window(1, WEEK), "every score of the window"),
    Query("Watch", "values of model", lambda s: s.traces.values("model")),
    Query("Watch", "models by day", lambda s: s.traces.values_per_day("model", ["m0", "m1"])),
    Query("Watch", "models seen", lambda s: models_seen.registry(s)),
    Query("Watch", "window of a recheck", lambda s: s.traces.span(WEEK)),
    Query("Watch", "scores drawn for drift", lambda s: s.coverage.draw(1, WEEK, 2000, rng=size_store.rng())),
    Query("Watch", "scored in a week, counted", lambda s: s.coverage.count(1, WEEK), "every score of the window"),
]


def seconds(call: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """(the median, the slowest) of some calls after a first; of one call where that takes long."""
    began = time.perf_counter()
    call()
    first = time.perf_counter() - began
    if first > 3:
        return first, first
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times), max(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgresql", type=int, default=10_000_000)
    parser.add_argument("--sqlite", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=SMALL)
    parser.add_argument("--folder", type=Path, help="where the stores are made; default: a temporary folder")
    parser.add_argument("--picture", type=Path, help="draw time against size, both logarithmic, into this file")
    given = parser.parse_args()
    failed: list[str] = []
    grids: dict[str, Grid] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as passing:
        for kind in ("sqlite", "postgresql"):
            if large := getattr(given, kind):
                failed += bench(kind, Path(passing) / kind, given.small, large, grids)
    if given.picture:
        draw(grids, given.picture)
    if failed:
        raise SystemExit("not within its aim: " + "; ".join(failed))


def bench(kind: str, folder: Path, small: int, large: int, grids: dict[str, Grid]) -> list[str]:
    folder.mkdir()
    failed: list[str] = []
    grid = grids[kind] = {}
    with size_store.server(kind, folder) as url_of:
        for size in sizes_between(small, large):
            began = time.perf_counter()
            url = url_of(f"n{size}")
            size_store.build(url, size)
            print(f"\n{kind}: {size:,} traces made in {time.perf_counter() - began:.0f} s", flush=True)
            with closing(open_store(url)) as store:
                grid[size] = {query: seconds(lambda query=query: query.call(store)) for query in QUERIES}  # type: ignore[misc]
        failed += growth_table(kind, grid)
        failed += draws(kind, url, large)
        failed += imports(kind, url_of("imported"), folder)
    return failed


def sizes_between(small: int, large: int) -> list[int]:
    """The small size, ten times as much and so on, and the large one."""
    sizes = [small]
    while sizes[-1] * 10 < large:
        sizes.append(sizes[-1] * 10)
    return sorted({*sizes, large})


def growth_table(kind: str, grid: Grid) -> list[str]:
    failed = []
    sizes = sorted(grid)
    heads = " | ".join(f"{size:,}: ms" for size in sizes)
    print(f"\n| page | query | {heads} | slowest, ms | growth |\n|---|---|{'---|' * len(sizes)}---|---|")
    for query in QUERIES:
        base, (now, slowest) = grid[sizes[0]][query][0], grid[sizes[-1]][query]
        # Below 20 ms nobody notices, and the clock is most of it.
        grown = now / max(base, 0.02) if now > 0.02 else 1.0
        note = f" (reads {query.reads_all})" if query.reads_all else ""
        times = [f"{grid[size][query][0] * 1e3:.1f}" for size in sizes]
        row = (query.page, query.name + note, *times, f"{slowest * 1e3:.1f}")
        print(f"| {' | '.join(row)} | {now / base:.1f} |", flush=True)
        if not query.reads_all and (grown > GROWTH or slowest > PAGE_SECONDS):
            failed.append(f"{kind}: {query.page}, {query.name}: {now:.2f} s, {grown:.1f} x")
    return failed


def draw(grids: dict[str, Grid], path: Path) -> None:
    """A panel per database, a line per query: red and named what must read all."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(grids), figsize=(5.5 * len(grids), 4.2), sharey=True, squeeze=False)
    for panel, (kind, grid) in zip(panels[0], grids.items(), strict=True):
        sizes = sorted(grid)
        for query in sorted(QUERIES, key=lambda query: bool(query.reads_all)):
            times = [grid[size][query][0] for size in sizes]
            color = "#b3562a" if query.reads_all else "#8a8f98"
            panel.plot(sizes, times, color=color, marker="o", markersize=3, linewidth=1.2)
            if query.reads_all:
                panel.annotate(query.name, (sizes[-1], times[-1]), fontsize=6, ha="right", va="bottom")
        panel.axhline(PAGE_SECONDS, color="#444444", linewidth=0.8, linestyle="--")
        panel.set(xscale="log", yscale="log", title=kind, xlabel="traces in the store")
        panel.grid(visible=True, linewidth=0.3)
    panels[0][0].set_ylabel("seconds (median)")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def draws(kind: str, url: str, size: int) -> list[str]:
    """A random sample against an indexed count of its window; an octave sample, in a process of its own."""
    window = TraceFilter(since=NOW - timedelta(days=14), until=NOW, undated=False)
    tests = (TraceRow.timestamp >= window.since, TraceRow.timestamp < window.until)
    indexed = select(func.count()).select_from(TraceRow).where(*tests)
    failed, names = [], iter(f"s{number}" for number in range(1000))
    with closing(open_store(url)) as store:

        def counting() -> object:
            with store.engine.connect() as connection:
                return connection.scalar(indexed)

        def drawing() -> object:
            return sample.draw(store, next(names), size=500, design="random", where=window, seed=1, now=NOW)

        (count, _), (draw, _) = seconds(counting), seconds(drawing)
    print(
        f"\nsample 500 of {size:,}: {draw * 1e3:.0f} ms, an indexed count of its window {count * 1e3:.0f} ms: "
        f"{draw / count:.2f} x (< {DRAW_RATIO:.0f} x)",
        flush=True,
    )
    if draw > DRAW_RATIO * count:
        failed.append(f"{kind}: sample 500, {draw / count:.1f} x")
    words = [sys.executable, __file__, "octave", url]
    took, memory = map(float, subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split())
    print(f"octave draw of {size:,} x {len(size_store.DETECTORS)} detectors: {took:.0f} s (<= {OCTAVE_SECONDS:.0f} s), "
          f"{memory:.2f} GB (<= {OCTAVE_GB:.0f} GB)", flush=True)  # fmt: skip
    if took > OCTAVE_SECONDS or memory > OCTAVE_GB:
        failed.append(f"{kind}: octave draw, {took:.0f} s, {memory:.1f} GB")
    return failed


def octave(url: str) -> None:
    """Print the seconds and the gigabytes of one octave draw over the whole store."""
    with closing(open_store(url)) as store:
        began = time.perf_counter()
        sample.draw(store, f"octave {began}", size=500, design="octave", where=ALL, seed=1, now=NOW)
        print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)


def imports(kind: str, url: str, folder: Path) -> list[str]:
    """Traces of 1 kB into an empty store, and the same file again."""
    path, rates = folder / "traces.jsonl", []
    size_store.write_file(path, IMPORTED)
    with closing(open_store(url)) as store:
        for _ in range(2):
            began = time.perf_counter()
            import_file(store.traces, path)
            rates.append(IMPORTED / (time.perf_counter() - began))
    first, again = rates
    each = path.stat().st_size / IMPORTED
    print(f"import of {IMPORTED:,} traces of {each:.0f} bytes: {first:,.0f}/s (>= {IMPORT_RATE:,}/s), "
          f"again {again:,.0f}/s (>= {AGAIN * IMPORT_RATE:,.0f}/s)", flush=True)  # fmt: skip
    slow = kind == "postgresql" and (first < IMPORT_RATE or again < AGAIN * IMPORT_RATE)
    return [f"{kind}: import {first:,.0f}/s, again {again:,.0f}/s"] if slow else []


if __name__ == "__main__":
    if sys.argv[1:2] == ["octave"]:
        octave(sys.argv[2])
    else:
        main()

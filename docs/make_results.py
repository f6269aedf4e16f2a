"""Writes docs/results.md: every detector that can run here, on every labelled data set here, as a user would run it.

python docs/make_results.py                     # the sample traces and ../shared/data, half an hour on two cores
python docs/make_results.py faithdial_audit     # these only
python docs/make_results.py --print faithdial_audit     # prints, writes nothing
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "results.md"
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
os.environ["TOUCHSTONE_CACHE_MB"] = "0"

from results_points import part  # noqa: E402

from calibrate import registry  # noqa: E402
from calibrate.ingest import import_file  # noqa: E402
from calibrate.stats.bootstrap import RESAMPLES, auroc_interval  # noqa: E402
from calibrate.steps import baselines, demo, detect, tune  # noqa: E402
from calibrate.types import Interval  # noqa: E402
from db import Store, open_store  # noqa: E402

SAMPLE_TRACES = "sample traces"
SEED = 20261121
FEW = 5  # of either class: below that an AUROC says nothing

INTRODUCTION = """\
# Results

Written by `python docs/make_results.py`, which imports each file with its labels into a fresh store, runs `detect all`,
and does so again with `variant=plain`, the recipes as commonly published. The labelled data is third-party and does not
come with Touchstone; the sample traces do.

*AUROC* is the chance that a hallucinated trace is scored nearer to the flagged side than a clean one; .5 is chance. Its
95% interval is a bootstrap of {resamples} resamples over groups of traces that share their sources. *AP* is average
precision, to be read against the prevalence. *Coverage* is the share of labelled traces that could be scored; refusals
are left out. Traces per second are those of one run of all detectors on two shared cores, nothing kept from before;
what one of them has split or embedded, the next need not.
`word_overlap` and the answer's length are the baselines: a detector that does not beat them has added nothing. The
entropy baselines are fitted from the same clean labels that `entropy_z` is then measured on, which flatters it.
"""


@dataclass(frozen=True)
class Line:
    name: str
    n: int
    coverage: float
    auroc: Interval
    average_precision: float | None
    per_second: float | None
    plain: Interval | None = None
    why: str = ""


def open_set(name: str, folder: Path) -> Store:
    store = open_store(f"sqlite:///{folder}/{name.replace(' ', '-')}.db")
    if name == SAMPLE_TRACES:
        demo.fill(store, detect.utc_now())
    else:
        import_file(store.traces, DATA / f"{name}.jsonl.gz", labels_as="data")
    return store


def scored(store: Store, variant: str) -> Mapping[str, Mapping[str, float]]:
    """Runs everything over the labelled traces; the tallies."""
    queued = detect.queue(store, ["all"], detect.scope_of(labelled=True), params={"variant": variant})
    finished = detect.work(store, run_id=queued.id)
    assert finished is not None
    assert finished.status == "done", finished.error
    return finished.counts


def lines(store: Store) -> Iterator[Line]:
    baselines.fit(store, now=detect.utc_now())
    tallies, plain = scored(store, "default"), scored(store, "plain")
    for detector in registry.names():
        tally = tallies[detector]
        if not tally["scored"]:
            why = next(iter(tally["why"]), "")  # type: ignore[call-overload]
            yield Line(detector, 0, 0.0, Interval(None), None, None, why=why)
            continue
        found = tune.labelled(store, detector, params={"variant": "default"})
        there = np.isfinite(found.scores)
        yield Line(
            detector,
            int(there.sum()),
            float(there.mean()),
            _auroc(found),
            found.sweep.average_precision,
            tally["scored"] / tally["seconds"] if tally["seconds"] else None,
            _auroc(tune.labelled(store, detector, params={"variant": "plain"})) if plain[detector]["scored"] else None,
        )
    yield _length(store)


def _auroc(found: tune.Labelled) -> Interval:
    hallucinated = int(found.labels[np.isfinite(found.scores)].sum())
    if min(hallucinated, int(np.isfinite(found.scores).sum()) - hallucinated) < FEW:
        return Interval(None)
    groups, rng = [row.group for row in found.rows], np.random.default_rng(SEED)
    return auroc_interval(found.labels, found.scores, groups=groups, flag_when=found.flag_when, rng=rng)


def _length(store: Store) -> Line:
    """The answer's length as a detector: the longer, the more suspicious."""
    from sklearn.metrics import average_precision_score

    rows = tune.labelled(store, "word_overlap", params={"variant": "default"}).rows
    labels = np.array([row.gold == "hallucinated" for row in rows])
    lengths = np.array([float(len(trace.answer)) for trace in store.traces.load([row.pk for row in rows])])
    interval, rng = Interval(None), np.random.default_rng(SEED)
    if min(labels.sum(), (~labels).sum()) >= FEW:
        groups = [row.group for row in rows]
        interval = auroc_interval(labels, lengths, groups=groups, flag_when="above", rng=rng)
    return Line("answer length", len(rows), 1.0, interval, float(average_precision_score(labels, lengths)), None)


def section(name: str, folder: Path) -> str:
    began = time.perf_counter()
    store = open_set(name, folder)
    found = list(lines(store))
    points = part(store, SEED)
    store.close()
    length = found[-1]
    rows = ["| detector | n | coverage | AUROC | AP | plain AUROC | traces/s |", "|---|--:|--:|---|--:|---|--:|"]
    able = [line for line in found if line.n]
    for line in sorted(able, key=lambda line: -(line.auroc.value or 0)):
        speed = (
            ""
            if line.per_second is None
            else f"{line.per_second:,.0f}"
            if line.per_second > 10
            else f"{line.per_second:.1f}"
        )
        precision = "" if line.average_precision is None else decimals(line.average_precision)
        rows.append(
            f"| {line.name} | {line.n:,} | {line.coverage:.0%} | {figure(line.auroc)} | {precision} "
            f"| {figure(line.plain) if line.plain else ''} | {speed} |"
        )
    idle: dict[str, list[str]] = {}
    for line in found:
        if not line.n:
            idle.setdefault(line.why.partition(";")[0], []).append(f"`{line.name}`")
    silent = ["Could score nothing here:", "\n".join(f"- {', '.join(who)}: {why}" for why, who in idle.items())]
    print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return "\n\n".join(
        [f"## {name}", f"{length.n:,} labelled traces.", "\n".join(rows), *(silent if idle else []), points]
    )


def figure(found: Interval) -> str:
    if found.value is None:
        return "too few of one class"
    return f"{decimals(found.value)} ({decimals(found.low or 0)}–{decimals(found.high or 0)})"


def decimals(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 0.995 else f"{value:.2f}"


def sections(page: str) -> dict[str, str]:
    """The page's sections by their titles."""
    parts = page.split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.strip()}" for part in parts}


def main(wanted: list[str]) -> None:
    printing = "--print" in wanted
    wanted = [one for one in wanted if one != "--print"]
    names = [SAMPLE_TRACES, *sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))]
    if unknown := set(wanted) - set(names):
        raise SystemExit(f"no data set {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    for name in wanted or names:
        if name in UNLABELLED:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = section(name, Path(folder))
        if printing:
            print(made)
            continue
        held = sections(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
        held[name] = made
        parts = [INTRODUCTION.format(resamples=f"{RESAMPLES:,}").rstrip(), *(held[one] for one in names if one in held)]
        PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


UNLABELLED = ("uqlm_logprob_format",)

if __name__ == "__main__":
    main(sys.argv[1:])

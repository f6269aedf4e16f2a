"""Writes docs/reference/results.md: every detector that can run here, on every labelled data set here.

python docs/make_results.py                     # the sample traces and ../shared/data, up to an hour on two cores
python docs/make_results.py faithdial_audit     # these only
python docs/make_results.py --print faithdial_audit     # prints, writes nothing
python docs/make_results.py --beside expertqa   # minutes: only what is said beside word overlap, with cached vectors
python docs/make_results.py --quick ragtruth_qa # a minute: only what is said of the answering model, without a model
python docs/make_results.py --again expertqa    # with cached vectors; the speeds stay those of an earlier run
python docs/make_results.py --plumbing http     # seconds, all of them an hour: judges and adapters on tiny models
python docs/make_results.py --page              # runs nothing: puts the page together from docs/reference/results/
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "reference" / "results.md"
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
if not {"--beside", "--quick", "--again"} & {*sys.argv}:
    os.environ["TOUCHSTONE_CACHE_MB"] = "0"  # speeds are measured

import results_ensembles  # noqa: E402
import results_learned  # noqa: E402
import results_parts  # noqa: E402
import results_plumbing  # noqa: E402
import results_points  # noqa: E402
import results_summary  # noqa: E402
from results_groups import grouped  # noqa: E402
from results_points import figure  # noqa: E402

from calibrate import registry  # noqa: E402
from calibrate.ingest import import_file  # noqa: E402
from calibrate.report.sentences.tuning.ensembles import names  # noqa: E402
from calibrate.report.sentences.tuning.scoreboard import sentences  # noqa: E402
from calibrate.stats.ensembles import performance  # noqa: E402
from calibrate.stats.ensembles.nested_cv import FOLDS, REPEATS  # noqa: E402
from calibrate.stats.intervals.bootstrap import RESAMPLES, Units  # noqa: E402
from calibrate.stats.intervals.ranking import rank_with_intervals  # noqa: E402
from calibrate.stats.sweep.design import Bools, Floats  # noqa: E402
from calibrate.stats.sweep.sweep import enough_to_rank, sweep  # noqa: E402
from calibrate.types import FlagWhen, Interval  # noqa: E402
from calibrate.workflow.detection import baselines, detect  # noqa: E402
from calibrate.workflow.evidence import evidence, loading  # noqa: E402
from calibrate.workflow.traces import demo  # noqa: E402
from calibrate.workflow.tuning import scoreboard  # noqa: E402
from calibrate.workflow.tuning.worth import PACKAGED  # noqa: E402
from db import Store, open_store  # noqa: E402

SAMPLE_TRACES = "sample traces"
SEED = 20261121
LENGTH = "answer length"
FEW_OF_ONE = "too few of one class"

INTRODUCTION = """\
# Results

`python docs/make_results.py` writes this page. It imports each labelled file into a fresh store and runs `detect
all`, then once more with `variant=plain`, the recipes as commonly published. The labelled data is third-party and
does not come with Touchstone; the sample traces do.

*AUROC* is the chance that a hallucinated trace is scored nearer to the flagged side than a clean one; .5 is chance.
*AP* is average precision; compare it with the share of hallucinated labels. *Coverage* is the share of labelled
traces that could be scored; refusals are left out. *Traces/s* is measured in one run of all detectors on two shared
cores with empty caches; what one detector has split or embedded, the next reuses, and what else ran there makes all
slower: where every detector is slow, the machine was busy. `word_overlap` and the answer's
length are the baselines: a detector that does not beat them adds nothing. Two figures are flattered: `entropy_z`,
because its baselines are fitted to the same clean labels that it is then measured on, and a little also the detector
that leads, because the labels that name it also measure it.

*Which model answered* is a baseline too: where models err at different rates, its own rate of hallucinations (out of
fold, by group, drawn towards the common rate where its labels are few) ranks answers that nobody has read. *Within one
model* is the AUROC of pairs of a hallucinated and a clean answer of the same model and operation, and *fall* is what
is lost by that. A detector *recognises* the error if the interval within lies above .5, and the model if the overall
one does, the one within does not, and the fall is shown.

*Thresholds* are chosen on one half of the labels and judged on the other. `elbow` is the highest F1 on the smoothed
curve. `precision>=` is the most recall at a precision of {low:.0%}, or of {high:.0%} where more than {common:.0%} of
the labels are hallucinated and flagging everything would do. *Precision where chosen* is that of the traces flagged
in the first half, with their number; all other columns are the second half's. Recall is end to end: a trace without a
score is missed. Two kinds of detectors are left out: those with fewer than {enough} scored labels of either verdict,
and those whose AUROC is not shown to be above .5.

*Ensembles* combine the detectors that rank best, at most four. Everything that looks at labels (the choice of these
members, the fit of `logistic`, and the choice of the best single detector among those that can flag so little) leaves
out each of {folds} folds in turn, {repeats} times over, and is judged on the fold left out; the members named are those
of all labels. Each ensemble is cut to flag at most its budget of the traffic; it flags less where many
traces share a score. *Flagged* is what it does out of fold. A second budget follows if anything finds nothing at the
first. An ensemble is shown to be better if the whole interval of the difference in recall is above 0. Several are
compared, each by itself.

Traces that share a question, a source or the passage they were cut from err together. They form one *group*, named
before the import, and a group lies in one half or one fold. All intervals are 95%: of AUROC, AP and differences from
a bootstrap of whole groups ({table} resamples for the table, {leader} for the sentences about the leader, {ensembles}
for ensembles), of precision and recall from the variance that whole groups leave.
"""
INTRODUCED = {
    "low": results_points.TARGETS[0],
    "high": results_points.TARGETS[1],
    "common": results_points.TARGETS[0] - results_points.ABOVE,
    "enough": results_points.ENOUGH,
    "folds": FOLDS,
    "repeats": REPEATS,
    "table": f"{RESAMPLES:,}",
    "leader": f"{scoreboard.RESAMPLES:,}",
    "ensembles": f"{performance.RESAMPLES:,}",
}
UNKNOWN = Interval(None)


@dataclass(frozen=True)
class Areas:
    """Under the ROC and the precision-recall curve; unknown where either verdict has too few scored labels."""

    auroc: Interval = UNKNOWN
    average_precision: Interval = UNKNOWN


@dataclass(frozen=True)
class Line:
    name: str
    n: int
    coverage: float
    areas: Areas
    per_second: float | None
    plain: Interval | None = None
    why: str = ""


def open_set(name: str, folder: Path) -> Store:
    store = open_store(f"sqlite:///{folder}/{name.replace(' ', '-')}.db")
    if name == SAMPLE_TRACES:
        demo.fill(store, detect.utc_now())
    else:
        import_file(store.traces, grouped(DATA / f"{name}.jsonl.gz", folder), labels_as="data")
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
        tally = tallies.get(detector)  # None where it cannot run here
        if tally is None:
            yield Line(detector, 0, 0.0, Areas(), None, why=registry.make(detector).unavailable() or "")
            continue
        if not tally["scored"]:
            why = next(iter(tally["why"]), "")  # type: ignore[call-overload]
            yield Line(detector, 0, 0.0, Areas(), None, why=why)
            continue
        data = loading.load_evidence(store, detector, params={"variant": "default"})
        has_score = np.isfinite(data.scores)
        yield Line(
            detector,
            int(has_score.sum()),
            float(has_score.mean()),
            _areas(data),
            tally["scored"] / tally["seconds"] if tally["seconds"] else None,
            _areas(loading.load_evidence(store, detector, params={"variant": "plain"})).auroc
            if plain[detector]["scored"]
            else None,
        )
    yield _length(store)


def _areas(data: evidence.Evidence) -> Areas:
    return _areas_of(data.labels, data.scores, data.groups, data.flag_when)


def _areas_of(labels: Bools, scores: Floats, groups: Sequence[str | None], flag_when: FlagWhen) -> Areas:
    scored_labels = labels[np.isfinite(scores)]
    if not enough_to_rank(int(scored_labels.sum()), int((~scored_labels).sum())):
        return Areas()
    curve, rng = sweep(labels, scores, flag_when=flag_when), np.random.default_rng(SEED)
    ranking = rank_with_intervals(curve, labels, scores, rng=rng, groups=groups)
    return Areas(ranking.auroc, ranking.average_precision)


def _length(store: Store) -> Line:
    """The answer's length as a detector: the longer, the more suspicious."""
    data = loading.load_evidence(store, "word_overlap", params={"variant": "default"})
    traces = store.traces.load([row.pk for row in data.rows])
    lengths = np.array([float(len(trace.answer)) for trace in traces])
    return Line(LENGTH, len(lengths), 1.0, _areas_of(data.labels, lengths, data.groups, "above"), None)


def pieces_of(name: str, folder: Path) -> dict[str, str]:
    """Everything that is said of one data set."""
    began = time.perf_counter()
    store = open_set(name, folder)
    rows, board = list(lines(store)), scoreboard.scoreboard(store, seed=SEED)
    pieces = {
        "labels": _labels(store),
        "versions": results_summary.versions(row.name for row in rows if row.n and row.name != LENGTH),
        "table": _table(rows),
        "leader": " ".join(sentences(board)),
        "identity": results_parts.identity(board, quick=False),
        "beside": results_summary.part(store, SEED),
        "idle": _idle(rows),
        "thresholds": results_points.part(store, board, SEED),
        "ensembles": results_ensembles.part(store, SEED),
        "learned": results_learned.part(store, SEED),
    }
    store.close()
    print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return pieces


def _labels(store: Store) -> str:
    data = loading.load_evidence(store, "word_overlap", params={"variant": "default"})
    n, groups = len(data.rows), int(Units.among(data.groups).sizes.sum())
    shared = "" if groups == n else f", in {groups:,} groups"
    return f"{n:,} labelled traces, {data.labels.sum():,} of them hallucinated{shared}."


def _table(lines: Sequence[Line]) -> str:
    rows = ["| detector | n | coverage | AUROC | AP | plain AUROC | traces/s |", "|---|--:|--:|---|---|---|--:|"]
    able = [line for line in lines if line.n]
    for line in sorted(able, key=lambda line: -(line.areas.auroc.value or 0)):
        speed = line.per_second
        rows.append(
            f"| {line.name} | {line.n:,} | {line.coverage:.0%} | {figure(line.areas.auroc, FEW_OF_ONE)} "
            f"| {figure(line.areas.average_precision, '')} | {figure(line.plain, '') if line.plain else ''} "
            f"| {'' if speed is None else f'{speed:,.0f}' if speed > 10 else f'{speed:.1f}'} |"
        )
    return "\n".join(rows)


def _idle(lines: Sequence[Line]) -> str:
    idle: dict[str, list[str]] = {}
    for line in lines:
        if not line.n:
            idle.setdefault(line.why.partition(";")[0], []).append(f"`{line.name}`")
    items = [f"- {', '.join(detectors)}: {why}" for why, detectors in idle.items()]
    return "\n".join(["Could score nothing here:", "", *items]) if items else ""


def beside(name: str, folder: Path) -> dict[str, str]:
    """A new table beside word overlap, of the detectors that need not embed word by word."""
    able = [each for each in registry.names() if not registry.make(each).unavailable() and "bertscore" not in each]
    return {"beside": _with_scores_of(able, name, folder, lambda store: results_summary.part(store, SEED))}


def quick(name: str, folder: Path) -> dict[str, str]:
    """A new table about the answering model, of the detectors that need no model."""
    able = [each for each in registry.names() if not registry.make(each).unavailable()]
    able = [each for each in able if not registry.make(each).revision()]

    def measure(store: Store) -> str:
        return results_parts.identity(scoreboard.scoreboard(store, seed=SEED), quick=True)

    return {"identity": _with_scores_of(able, name, folder, measure)}


def _with_scores_of(names: Sequence[str], name: str, folder: Path, measure: Callable[[Store], str]) -> str:
    store = open_set(name, folder)
    queued = detect.queue(store, names, detect.scope_of(labelled=True), params={"variant": "default"})
    detect.work(store, run_id=queued.id)
    text = measure(store)
    store.close()
    return text


def main(arguments: list[str]) -> None:
    part = next((make for option, make in PARTS.items() if option in arguments), pieces_of)
    chosen = [name for name in arguments if not name.startswith("--")]
    names = [SAMPLE_TRACES, *sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))]
    if unknown := set(chosen) - set(results_plumbing.MODELS if "--plumbing" in arguments else names):
        raise SystemExit(f"no data set {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    if "--plumbing" in arguments:
        data = DATA / f"{results_plumbing.SET}.jsonl.gz"
        results_plumbing.measure(data, chosen, lambda evidence: _areas(evidence).auroc)
    runs_nothing = {"--page", "--plumbing"} & {*arguments}
    for name in [] if runs_nothing else chosen or names:
        if name in UNLABELLED:
            continue
        with tempfile.TemporaryDirectory() as folder:
            pieces = part(name, Path(folder))
        if "--print" in arguments:
            print("\n\n".join(piece for piece in pieces.values() if piece))
            continue
        before = results_parts.load([name]).get(name, {})
        if "--again" in arguments:
            pieces = results_parts.with_speeds_of(before, pieces)
        results_parts.save(name, {**before, **pieces})
        write(results_parts.load(names))
    if runs_nothing:
        write(results_parts.load(names))


def write(kept: Mapping[str, Mapping[str, str]]) -> None:
    """The whole page: what it says of all data sets together, then each one's section; and what the Detect page
    reads."""
    sections = {name: results_parts.section(pieces) for name, pieces in kept.items()}
    introduction, *reading = INTRODUCTION.format(**INTRODUCED).rstrip().split("\n\n", 2)
    title_and_source = [introduction, reading[0]]
    if outdated := results_summary.outdated(sections):
        compared = [name for name in outdated if results_summary.HEAD in sections[name]]
        only = f"; of {names([*compared])} what they say *beside word overlap* is new" if compared else ""
        title_and_source.append(
            f"**Not remade:** the tables of {names([*outdated])} were made before sentences that claim nothing were "
            f"left out{only}."
        )
    title_and_source.append(
        f"{names([f'`{name}`' for name in UNLABELLED])} has no section: its traces have no labels, and test the format "
        "alone."
    )
    summary, who_leads = results_summary.top(sections), results_parts.leaders(kept)
    beginning = [*title_and_source, summary, who_leads, "## How to read the tables", *reading[1:]]
    blocks = [*beginning, *sections.values(), results_plumbing.section()]
    PAGE.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    document = {"made_by": "docs/make_results.py", "detectors": results_summary.measured(sections)}
    PACKAGED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


PARTS = {"--beside": beside, "--quick": quick}
UNLABELLED = ("uqlm_logprob_format",)

if __name__ == "__main__":
    main(sys.argv[1:])

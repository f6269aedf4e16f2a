"""`scores`: import scores that were computed elsewhere, define and list their detectors, export every score."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import TRUNCATED, now, open_store, unwritten
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.ingest.scores import SCORES, ScoreRecord, write_scores, writer_for
from calibrate.report.numbers import count
from calibrate.report.sentences.traces import scores as sentences
from calibrate.targets import check_target
from calibrate.types import ExternalDetector
from calibrate.workflow.detection import external
from calibrate.workflow.detection.score_files import ImportedScores, import_scores
from calibrate.workflow.evidence import score_export
from db import Store

SHOW_EVERY = 1000  # rows
MOST_ERRORS = 20  # on a terminal; --json lists the first thousand
# What each action takes, besides --store and --json.
TAKES: Mapping[str, frozenset[str]] = {
    "export": frozenset({"file", "detector", "sample", "param", "force"}),
    "import": frozenset({"file", "detector", "flag_when", "unit", "low", "high", "revision", "column"}),
    "define": frozenset({"file", "flag_when", "unit", "low", "high"}),
    "remove": frozenset({"file"}),
    "list": frozenset(),
}
OPTIONS = ("detector", "flag_when", "unit", "low", "high", "revision", "column", "sample", "param", "force")


@dataclass(frozen=True, slots=True)
class ExportedConfiguration:
    """What was written of one configuration: how many rows of each status."""

    detector: str
    version: str
    params: Mapping[str, Any]
    rows: int
    statuses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExportedScores:
    path: str
    rows: int
    configurations: Sequence[ExportedConfiguration]


@dataclass(frozen=True, slots=True)
class RejectedScore:
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """What became of a file of scores. `flag_when` is None while nobody has told; `scored` traces have a score of the
    `revision` now. `new` and `changed` were stored, `unchanged` are as before, `differing` were left out."""

    detector: str
    flag_when: str | None
    revision: str
    scored: int
    new: int
    changed: int
    unchanged: int
    differing: int
    by_content: int
    rejected: int
    errors: Sequence[RejectedScore]
    cut: bool


@dataclass(frozen=True, slots=True)
class ExternalDocument:
    """An external detector; `scored` traces have a score of its `revision`."""

    name: str
    flag_when: str | None
    unit: str | None
    low: float | None
    high: float | None
    revision: str
    revisions: Sequence[str]
    scored: int


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    removed: str


@dataclass(frozen=True, slots=True)
class ListedDocument:
    external: Sequence[ExternalDocument]


def run(args: Namespace) -> Answer:
    for option in OPTIONS:
        if getattr(args, option) not in (None, [], False) and option not in TAKES[args.action]:
            where = " and ".join(action for action, options in TAKES.items() if option in options)
            raise BadInput(f"--{option.replace('_', '-')} is for {where}, not for `scores {args.action}`")
    wants_file = "file" in TAKES[args.action]
    if wants_file != (args.file is not None):
        word = "NAME" if args.action in ("define", "remove") else "FILE"
        raise BadInput(f"it is `scores {args.action}{' ' + word if wants_file else ''}`; --help shows how")
    actions = {"export": _export, "import": _import, "define": _define, "remove": _remove, "list": _list}
    return actions[args.action](args)


def _import(args: Namespace) -> Answer:
    if len(args.detector or ()) != 1:
        raise BadInput("say whose scores they are, with one --detector NAME, like ragas_faithfulness")
    columns = parse_pairs(args.column, "--column")
    store = open_store(args)
    so_far = [0]

    def say() -> str:
        return f"the scores of {count(so_far[0], 'row')} so far are in the store; the same command goes on"

    with (
        when_stopped(say),
        progress(args, Path(args.file).name, "row", estimated=True) as advance,
    ):

        def on_progress(rows: int, share: float) -> None:
            so_far[0] = rows
            advance(rows, rows / (share or 1.0))

        done = import_scores(
            store,
            args.file,
            args.detector[0],
            flag_when=args.flag_when,
            unit=args.unit,
            low=args.low,
            high=args.high,
            revision=args.revision,
            columns=columns,
            on_progress=on_progress,
            now=now(),
        )
    detector, taken = done.detector, done.taken
    document = ImportedDocument(
        detector=detector.name,
        flag_when=detector.flag_when,
        revision=detector.revision,
        scored=external.count_scored(store, detector),
        new=taken.new,
        changed=taken.changed,
        unchanged=taken.same,
        differing=taken.differing,
        by_content=done.by_content,
        rejected=done.rejected,
        errors=[
            RejectedScore(error.line, sentences.rejected(error, detector.low, detector.high)) for error in done.errors
        ],
        cut=done.cut,
    )
    nothing = done.rejected > 0 and not _is_taken(done)
    return Answer(document, "\n".join(_import_lines(done, document)), exit_code=2 if nothing or done.cut else 0)


def _is_taken(done: ImportedScores) -> bool:
    """Whether a row of the file is a score of a trace."""
    taken = done.taken
    return bool(taken.new or taken.changed or taken.same or taken.differing)


def _import_lines(done: ImportedScores, document: ImportedDocument) -> Iterator[str]:
    yield f"{sentences.taken(done.taken)}, {count(done.rejected)} rejected"
    if done.by_content:
        yield f"  {count(done.by_content, 'trace was', 'traces were')} found by what the file quotes"
    if done.taken.differing:
        yield f"  {sentences.differing(done.taken.differing)}"
    for error in document.errors[:MOST_ERRORS]:
        yield f"  line {error.line}: {error.reason}"
    if done.rejected > MOST_ERRORS:
        more = count(done.rejected - MOST_ERRORS)
        yield f"  … and {more} more; --json lists the first {count(len(document.errors))}"
    if done.cut:
        yield f"  {TRUNCATED}"
    if document.scored and _is_taken(done):
        yield sentences.next_step(done.detector)


def _define(args: Namespace) -> Answer:
    if args.flag_when is None and args.unit is None and args.low is None and args.high is None:
        raise BadInput(f"say what to define: `scores define {args.file} --flag-when above`, or below")
    store = open_store(args)
    before = store.external.find(external.name_of(args.file))
    detector = external.define_external(
        store, args.file, flag_when=args.flag_when, unit=args.unit, low=args.low, high=args.high, now=now()
    )
    document = _describe(store, detector)
    lines = [f"{detector.name}: {sentences.turned(detector, before)}"]
    lines += [] if document.scored else [sentences.without_scores(detector)]
    return Answer(document, "\n".join(lines))


def _remove(args: Namespace) -> Answer:
    store = open_store(args)
    name = external.name_of(args.file)
    external.remove_external(store, name, now=now())
    return Answer(RemovedDocument(name), f"{name} was removed; it never had a score")


def _list(args: Namespace) -> Answer:
    store = open_store(args)
    document = ListedDocument([_describe(store, detector) for detector in store.external.all()])
    if not document.external:
        return Answer(document, "no scores were imported: `scores import FILE --detector NAME` takes them")
    head = ("detector", "flags when", "traces scored", "revision", "unit")
    rows = [(each.name, each.flag_when or "?", count(each.scored), each.revision, each.unit or "")
            for each in document.external]  # fmt: skip
    lines = [table([head, *rows], right=(2,))]
    lines += [sentences.next_step(each) for each in store.external.all() if each.flag_when is None]
    return Answer(document, "\n".join(lines))


def _describe(store: Store, detector: ExternalDetector) -> ExternalDocument:
    return ExternalDocument(
        name=detector.name,
        flag_when=detector.flag_when,
        unit=detector.unit,
        low=detector.low,
        high=detector.high,
        revision=detector.revision,
        revisions=store.external.revisions(detector.name),
        scored=external.count_scored(store, detector),
    )


def _export(args: Namespace) -> Answer:
    writer_for(args.file)
    store = open_store(args)
    check_target(args.file, SCORES, store=store.file, replace=args.force)
    configs = score_export.chosen_configs(store, args.detector or (), parse_pairs(args.param, "--param"))
    written: Counter[tuple[str, str]] = Counter()
    records = score_export.records(store, configs, sample=args.sample)
    with when_stopped(unwritten(args.file)), progress(args, "exporting", "row") as advance:
        total = score_export.count(store, configs, sample=args.sample)
        write_scores(_counted(records, written, lambda done: advance(done, total)), args.file)
    exported = [
        ExportedConfiguration(config.name, config.version, config.params, sum(statuses.values()), statuses)
        for config in configs
        for statuses in [{status: n for (name, status), n in sorted(written.items()) if name == config.name}]
    ]
    document = ExportedScores(args.file, written.total(), exported)
    lines = [f"{count(document.rows, 'row')} written to {args.file}"]
    for each in exported:
        states = ", ".join(f"{count(n)} {status}" for status, n in each.statuses.items())
        lines.append(f"  {each.detector}: {states or 'no traces'}")
    return Answer(document, "\n".join(lines))


def _counted(
    records: Iterable[ScoreRecord], written: Counter[tuple[str, str]], show: Callable[[int], None]
) -> Iterator[ScoreRecord]:
    for done, record in enumerate(records):
        if done % SHOW_EVERY == 0:
            show(done)
        written[record.detector, record.status] += 1
        yield record

"""`import`: take traces in from files. (The module has another name: `import` is a word of Python's.)"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate import registry, settings
from calibrate.cli import Answer
from calibrate.cli.common import TRUNCATED, check_labeller, now, open_store, user
from calibrate.cli.export import ArchiveDocument
from calibrate.cli.import_logged import import_logged
from calibrate.cli.import_preview import preview_files
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput, StoreError, StoreReplaced
from calibrate.ingest import ImportReport
from calibrate.ingest.inspection.profile import FIELDS, MORE_FIELDS
from calibrate.ingest.record import RECORD_FIELDS
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.imports import can_run, left_purged, read_as, replaced, stated, unstated
from calibrate.report.sentences.traces.scores import taken, undefined_all
from calibrate.report.sentences.traces.upkeep import holds
from calibrate.sanitize import visible
from calibrate.urls import redact
from calibrate.workflow.detection.usable import usable
from calibrate.workflow.traces.external_scores import TakenScores
from calibrate.workflow.traces.import_labelled import Imported, import_traces
from calibrate.workflow.traces.membership import InSample
from calibrate.workflow.upkeep.moving import import_all
from db import Store

MOST_ERRORS = 20  # on a terminal; --json lists the first thousand


@dataclass(frozen=True, slots=True)
class RejectedLine:
    line: int | None
    reason: str
    file: str


@dataclass(frozen=True, slots=True)
class ScoresDocument:
    """What became of the scores of one detector: how many are new or changed, and how many were left out."""

    detector: str
    new: int
    changed: int
    unchanged: int
    left_out: int
    revision: str


@dataclass(frozen=True, slots=True)
class FileFormat:
    """`read_with` names the files beside it that a part of its traces came from."""

    file: str
    format: str
    read_with: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ImportDocument:
    """What became of all files together. `samples` are those that labels became, `in_samples` those that the traces of
    other labels are members of; `outside_samples` labels are of traces in none. `formats` says what each file was
    recognized as; `fields` counts the traces that have each field. `refused` says of files why they were not read."""

    imported: int
    duplicates: int
    rejected: int
    labels: int
    labels_left_out: int
    samples: Sequence[str]
    in_samples: Sequence[InSample]
    outside_samples: int
    repaired: int
    cut: bool
    left_out: Mapping[str, int]
    redacted: Mapping[str, int]
    purged: int
    scores: Sequence[ScoresDocument]
    scores_left_out: Mapping[str, str]
    errors: Sequence[RejectedLine]
    formats: Sequence[FileFormat]
    fields: Mapping[str, int]
    refused: Mapping[str, str]


def run(args: Namespace) -> Answer:
    if args.everything:
        return _import_store(args)
    if args.logged:
        return import_logged(args)
    if not args.files:
        raise BadInput("name the files to import, or give --logged for what programs logged into the store")
    columns = parse_pairs(args.column, "--column")
    for name in columns:
        if name not in RECORD_FIELDS:
            fields = ", ".join(sorted(RECORD_FIELDS))
            raise BadInput(f"--column {name}=…: a trace has no field {name!r}; it has {fields}")
    if args.preview:
        return preview_files(args.files, format=args.format, columns=columns)
    check_labeller(args.labels_as)
    store = open_store(args, create=True)
    if args.no_labels and (args.labels_as or args.design):
        option = "--labels-as" if args.labels_as else "--design"
        raise BadInput(f"{option} is about the file's labels, and --no-labels leaves them out: give one of the two")
    imports: dict[str, Imported] = {}
    refused: dict[str, BadInput] = {}
    so_far: dict[str, int] = {}

    def say() -> str:
        number = count(sum(so_far.values()), "trace")
        return f"{number} imported so far are in the store; the same command goes on from there"

    try:
        with when_stopped(say):
            _import_all(args, store, columns, imports, refused, so_far)
    except BadInput as error:
        if not imports:
            raise
        number = count(sum(so_far.values()), "trace")
        raise BadInput(f"{error}\n{number} of the files before it are in the store") from error
    except StoreReplaced:
        raise
    except StoreError as error:
        number = count(sum(so_far.values()), "trace")
        raise StoreError(f"{error}. {number} imported before are in the store; the same command goes on") from error
    if not imports:
        raise BadInput("\n".join(map(str, refused.values())))
    document = add_up(imports, refused)
    # A rejected line among good ones is no failure, unless all had to be good: `rejected` counts them.
    nothing = document.rejected > 0 and (args.strict or document.imported + document.duplicates == 0)
    lines: list[str] = []
    for path in dict.fromkeys(args.files):
        lines += _lines(path, imports[path]) if path in imports else _refusal(path, refused[path], so_far.get(path, 0))
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or document.cut or refused else 0)


def _import_all(
    args: Namespace,
    store: Store,
    columns: Mapping[str, str],
    imports: dict[str, Imported],
    refused: dict[str, BadInput],
    so_far: dict[str, int],
) -> None:
    """Import each file into `imports`; `so_far` has the traces of each that are in the store, while it is read. A file
    that is `refused` ends a strict import; else the others are read."""
    for path in args.files:
        with progress(args, Path(path).name, estimated=True) as advance:

            def on_progress(report: ImportReport, path: str = path, name: str = Path(path).name) -> None:
                so_far[path] = report.imported
                done = report.checked or report.imported + report.duplicates + report.rejected + report.purged
                advance(done, done / (report.share or 1.0), f"checking {name}" if report.checked else name)

            try:
                imports[path] = import_traces(
                    store,
                    path,
                    format=args.format,
                    columns=columns or None,
                    labels_as=args.labels_as,
                    keep_labels=not args.no_labels,
                    design=args.design,
                    by=user(),
                    strict=args.strict,
                    redact=args.redact,
                    again=args.again,
                    on_progress=on_progress,
                    now=now(),
                )
            except BadInput as error:
                if args.strict:
                    raise
                refused[path] = error


def _import_store(args: Namespace) -> Answer:
    others = (args.column, args.labels_as, args.no_labels, args.design, args.strict, args.redact, args.format != "auto")
    if any(others) or len(args.files) > 1:
        raise BadInput("`import --all FILE` takes one archive, whole: leave out the other files and options")
    (name,) = args.files
    url = args.store or settings.read().store
    stopped = when_stopped(lambda: "nothing was imported: an archive comes in whole or not at all")
    with stopped, progress(args, "importing", "row") as advance:
        moved = import_all(url, Path(name), on_progress=advance)
    document = ArchiveDocument(name, moved.schema, moved.rows, moved.sha256)
    return Answer(document, f"{redact(url)} holds all of {name}: {holds(moved.rows)}")


def add_up(imports: Mapping[str, Imported], refused: Mapping[str, BadInput] | None = None) -> ImportDocument:
    """Add up what became of each file."""
    reports = {path: done.report for path, done in imports.items()}
    left_out: Counter[str] = Counter()
    redacted: Counter[str] = Counter()
    for report in reports.values():
        left_out.update(report.left_out)
        redacted.update(report.redacted)
    return ImportDocument(
        imported=sum(report.imported for report in reports.values()),
        duplicates=sum(report.duplicates for report in reports.values()),
        rejected=sum(report.rejected for report in reports.values()),
        labels=sum(report.labels for report in reports.values()),
        labels_left_out=sum(report.labels_left_out for report in reports.values()),
        samples=[done.sample.name for done in imports.values() if done.sample],
        in_samples=[each for done in imports.values() for each in done.membership.samples],
        outside_samples=sum(done.membership.outside for done in imports.values()),
        repaired=sum(report.repaired for report in reports.values()),
        cut=any(report.cut for report in reports.values()),
        left_out=left_out,
        redacted=redacted,
        purged=sum(report.purged for report in reports.values()),
        scores=_add_up_scores(imports.values()),
        scores_left_out={name: why for done in imports.values() for name, why in done.refused.items()},
        errors=[
            RejectedLine(error.line, error.reason, path) for path, report in reports.items() for error in report.errors
        ],
        formats=[FileFormat(path, done.format, done.report.read_with) for path, done in imports.items()],
        fields={
            name: sum(done.profile.filled.get(name, 0) for done in imports.values()) for name in (*FIELDS, *MORE_FIELDS)
        },
        refused={path: str(error) for path, error in (refused or {}).items()},
    )


def _add_up_scores(imports: Iterable[Imported]) -> list[ScoresDocument]:
    """What became of each detector's scores in all files; the revision is that of the last."""
    of_names: dict[str, list[TakenScores]] = {}
    for scores in (scores for done in imports for scores in done.scores):
        of_names.setdefault(scores.name, []).append(scores)
    return [
        ScoresDocument(
            detector=name,
            new=sum(scores.new for scores in parts),
            changed=sum(scores.changed for scores in parts),
            unchanged=sum(scores.same for scores in parts),
            left_out=sum(scores.left_out for scores in parts),
            revision=parts[-1].revision,
        )
        for name, parts in of_names.items()
    ]


def _refusal(path: str, error: BadInput, stored: int) -> Iterable[str]:
    yield f"{path}: not imported: {error}"
    if stored:
        yield f"  {count(stored, 'trace')} that came before are in the store"


def _lines(path: str, done: Imported) -> Iterable[str]:
    report = done.report
    yield (
        f"{path}: {count(report.imported)} imported, {count(report.duplicates)} in the store already, "
        f"{count(report.rejected)} rejected, {count(report.labels, 'label')} kept, "
        f"{count(report.labels_left_out)} left out"
    )
    for error in report.errors[:MOST_ERRORS]:
        yield f"  line {error.line}: {error.reason}"
    if report.rejected > MOST_ERRORS:
        more = count(report.rejected - MOST_ERRORS)
        yield f"  … and {more} more; --json lists the first {count(len(report.errors))}"
    if report.cut:
        yield f"  {TRUNCATED}"
    if done.profile.n:
        yield f"  {read_as(done)}"
        use = can_run(usable(done.profile), looked_at=done.profile.n)
        yield f"  {use}: `detect --list --all` says which, and what to log for the others"
    if report.repaired:
        yield f"  {count(report.repaired, 'character')} that no database can hold became U+FFFD"
    if report.purged:
        yield f"  {left_purged(report.purged)}: `import FILE --again` takes them in"
    if report.redacted:
        yield f"  {replaced(report.redacted)}"
    for scores in done.scores:
        yield f"  scores of {taken(scores)}"
    if names := [scores.name for scores in done.scores if scores.name not in registry.names()]:
        yield f"  {undefined_all(names)}"
    for name, why in done.refused.items():
        yield f"  scores {visible(name, 60)!r} were not imported: {visible(why, 300)}"
    for name, records in report.left_out.items():
        yield f"  field {name!r} was not imported ({count(records, 'record')})"
    chosen = [stated(done.sample)] if done.sample else unstated(done.membership)
    yield from (f"  {line}" for line in chosen)

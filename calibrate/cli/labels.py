"""`labels`: import labels from a file, or export them to one."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from calibrate.cli import Answer
from calibrate.cli.common import TRUNCATED, check_labeller, now, open_store, unwritten, user
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.labels import LABELS, LeftOut, format_for
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.imports import stated, unstated
from calibrate.report.sentences.traces.interchange import left_out, lost
from calibrate.targets import check_target
from calibrate.types import Label
from calibrate.workflow.detection.detect import no_sample
from calibrate.workflow.labelling import guides
from calibrate.workflow.labelling.interchange import read_file, write_file
from calibrate.workflow.traces.import_labelled import labeller_of, sample_name_of
from calibrate.workflow.traces.membership import NO_LABELS, InSample, membership, must_not_be_drawn
from calibrate.workflow.traces.stated_samples import keep_stated

MOST_ERRORS = 20  # on a terminal; --json lists all
SHOW_EVERY = 1000  # labels


@dataclass(frozen=True, slots=True)
class RejectedLabel:
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedLabels:
    """What became of the labels of a file. `replaced` counts verdicts that a later line of the file replaced; `sample`
    is what they were kept as, where it was stated how their traces were chosen; else `in_samples` are those that the
    traces are members of, and `outside_samples` labels are of traces in none. `left_out` counts what is in the file and
    is no label of a person's on a trace, such as answers to other questions."""

    labels: int
    unchanged: int
    replaced: int
    rejected: int
    errors: Sequence[RejectedLabel]
    cut: bool
    sample: str | None
    in_samples: Sequence[InSample]
    outside_samples: int
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExportedLabels:
    """`not_held` counts the labels of which the format could not hold something, by what that is."""

    labels: int
    path: str
    format: str
    not_held: Mapping[str, int]


def run(args: Namespace) -> Answer:
    return _export(args) if args.direction == "export" else _import(args)


def _import(args: Namespace) -> Answer:
    if args.sample or args.force:
        option = "--sample" if args.sample else "--force"
        raise BadInput(f"{option} is for export: a label is imported for its trace, whatever samples the trace is in")
    check_labeller(args.labels_as)
    store = open_store(args)
    labels: list[Label] = []
    labeller = args.labels_as or labeller_of(Path(args.file).name)
    errors: list[RejectedLabel] = []
    cut = False
    others: Counter[str] = Counter()
    kinds = [kind.key for kind in guides.known_kinds(store)]
    stopped = when_stopped(lambda: f"no label of {args.file} was kept; the same command takes all of them")
    with stopped, progress(args, "reading", "label") as advance:
        for done, row in enumerate(read_file(store, args.file, format=args.format, kinds=kinds)):
            if done % SHOW_EVERY == 0:
                advance(done, None)
            if isinstance(row, Rejected):
                cut |= row.last
                errors.append(RejectedLabel(row.line, row.reason))
            elif isinstance(row, LeftOut):
                others[row.what] += 1
            else:
                labels.append(row if row.labeller else replace(row, labeller=labeller))
        ids = {label.trace_id for label in labels}
        if args.design == "random":
            must_not_be_drawn(store, ids)  # before a label is kept
        advance(len(labels), None, "keeping")
        added, missing = store.labels.add_many(labels, now=now())
    errors += [RejectedLabel(None, f"no trace {trace_id!r} in the store") for trace_id in missing]
    sample = None
    if args.design and len(labels) > len(missing):
        sample = keep_stated(store, sample_name_of(args.file), ids, design=args.design, by=user(), now=now())
    of = NO_LABELS if sample else membership(store, ids.difference(missing))
    document = ImportedLabels(
        labels=added,
        unchanged=len(labels) - len(missing) - added,
        replaced=_count_replaced(labels),
        rejected=len(errors),
        errors=errors,
        cut=cut,
        sample=sample.name if sample else None,
        in_samples=of.samples,
        outside_samples=of.outside,
        left_out=others,
    )
    nothing = bool(errors) and len(labels) == len(missing)
    first, *rest = _lines(document)
    chosen: list[str] = []
    if not nothing:
        chosen = [stated(sample)] if sample else unstated(of)
    lines = [first, *(f"  {line}" for line in chosen), *rest]
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or cut else 0)


def _lines(document: ImportedLabels) -> Iterable[str]:
    yield (
        f"{count(document.labels, 'label')} added, {count(document.unchanged)} unchanged, "
        f"{count(document.rejected)} rejected"
    )
    if document.replaced:
        yield f"  {count(document.replaced)} of them replaced by the same person's later verdict on the same trace"
    if document.left_out:
        yield f"  {left_out(document.left_out)}"
    for error in document.errors[:MOST_ERRORS]:
        yield f"  line {error.line}: {error.reason}" if error.line else f"  {error.reason}"
    if len(document.errors) > MOST_ERRORS:
        yield f"  … and {count(len(document.errors) - MOST_ERRORS)} more; --json lists all"
    if document.cut:
        yield f"  {TRUNCATED}"


def _count_replaced(labels: Iterable[Label]) -> int:
    """Count the verdicts that their own labeller replaced by another one later in the file."""
    verdicts: dict[tuple[str, str, bool], str] = {}
    replaced = 0
    for label in labels:
        voice = (label.trace_id, label.labeller, label.adjudicates)
        replaced += verdicts.get(voice, label.verdict) != label.verdict
        verdicts[voice] = label.verdict
    return replaced


def _export(args: Namespace) -> Answer:
    if args.design:
        raise BadInput("--design is for import: it says how the traces of a file of labels were chosen")
    if args.labels_as:
        raise BadInput("--labels-as is for import: an export holds every label under its own labeller's name")
    store = open_store(args)
    check_target(args.file, LABELS, store=store.file, replace=args.force)
    sample = store.samples.get(args.sample) if args.sample else None
    if args.sample and sample is None:
        raise no_sample(store, args.sample)
    format = format_for(Path(args.file)) if args.format == "auto" else args.format
    with when_stopped(unwritten(args.file)), progress(args, "exporting", "label") as advance:
        written = write_file(store, args.file, format=format, sample=sample, on_progress=advance)
    document = ExportedLabels(written.labels, args.file, format, {str(what): n for what, n in written.lost.items()})
    lines = [f"{count(written.labels, 'label')} written to {args.file}"]
    if written.lost:
        lines.append(f"  {lost(format, written.lost)}")
    return Answer(document, "\n".join(lines))

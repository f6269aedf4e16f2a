"""`labels`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from calibrate.cli import Answer
from calibrate.cli.common import TRUNCATED, now, outfile, store
from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.labels import read_labels, write_labels
from calibrate.types import Label


def run(args: Namespace) -> Answer:
    if args.direction == "export":
        return _export(args)
    if args.sample or args.force:
        option = "--sample" if args.sample else "--force"
        raise BadInput(f"{option} is for export: a label comes in for its trace, whatever samples the trace is in")
    found = store(args)
    taken: list[Label] = []
    errors = []
    cut = False
    for row in read_labels(args.file):
        if isinstance(row, Rejected):
            cut |= row.last
            errors.append({"line": row.line, "reason": row.reason})
            continue
        line, label = row
        named = label if label.labeller else _as(label, args.labels_as)
        if named is None:
            errors.append({"line": line, "reason": "no labeller: name one in the file, or with --labels-as NAME"})
        else:
            taken.append(named)
    added, unknown = found.labels.add_many(taken, now=now())
    errors += [{"line": None, "reason": f"no trace {trace_id!r} in the store"} for trace_id in unknown]
    replaced = _replaced(taken)
    document = {
        "labels": added,
        "unchanged": len(taken) - len(unknown) - added,
        "replaced": replaced,
        "rejected": len(errors),
        "errors": errors,
        "cut": cut,
    }
    lines = [f"{added} labels added, {document['unchanged']} stood already, {len(errors)} rejected"]
    if replaced:
        lines.append(f"  {replaced:,} of them replaced by the same person's later verdict on the same trace")
    lines += [f"  line {e['line']}: {e['reason']}" if e["line"] else f"  {e['reason']}" for e in errors[:20]]
    if len(errors) > 20:
        lines.append(f"  … and {len(errors) - 20:,} more; --json lists all")
    if cut:
        lines.append(f"  {TRUNCATED}")
    nothing = bool(errors) and len(taken) == len(unknown)
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or cut else 0)


def _replaced(labels: Iterable[Label]) -> int:
    """How many verdicts their own labeller replaced by another one, later."""
    said: dict[tuple[str, str, bool], str] = {}
    replaced = 0
    for label in labels:
        voice = (label.trace_id, label.labeller, label.adjudicates)
        replaced += said.get(voice, label.verdict) != label.verdict
        said[voice] = label.verdict
    return replaced


def _export(args: Namespace) -> Answer:
    from calibrate.workflow.detection.detect import no_sample

    if args.labels_as:
        raise BadInput("--labels-as is for import: an export holds every label under its own labeller's name")
    outfile(args.file, replace=args.force)
    found = store(args)
    drawn = found.samples.get(args.sample) if args.sample else None
    if args.sample and drawn is None:
        raise no_sample(found, args.sample)
    written = write_labels(found.labels.export(drawn.id if drawn else None), args.file)
    return Answer({"labels": written, "path": args.file}, f"{written} labels written to {args.file}")


def _as(label: Label, labeller: str | None) -> Label | None:
    from dataclasses import replace

    return replace(label, labeller=labeller) if labeller else None

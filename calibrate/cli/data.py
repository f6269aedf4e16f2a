"""Verbs about traces, samples and labels."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from typing import Any

from calibrate import sampling
from calibrate.cli import Answer
from calibrate.cli.common import now, outfile, pairs, said, say, store, table
from calibrate.errors import BadInput
from calibrate.hostile import visible
from calibrate.ingest import ImportReport, import_file
from calibrate.ingest.base import Rejected
from calibrate.ingest.labels import read_labels, write_labels
from calibrate.ingest.record import KNOWN
from calibrate.types import Label, TraceFilter

MOST_LINES = 100_000
CUT = "the file could not be read to its end: what came before the damage is in the store; import a whole copy"
LABEL_STATES = ("any", "unlabelled", "labelled", "clean", "hallucinated", "unsure", "disputed")


def demo(args: Namespace) -> Answer:
    from calibrate.steps.demo import fill

    report = fill(store(args, create=True), now=now())
    return Answer(report.as_json(), f"{report.imported} sample traces with {report.labels} labels are in the store")


def import_files(args: Namespace) -> Answer:
    columns = pairs(args.column, "--column")
    for name in columns:
        if name not in KNOWN:
            raise BadInput(f"--column {name}=…: a trace has no field {name!r}; it has {', '.join(sorted(KNOWN))}")
    found = store(args, create=True)
    total: dict[str, Any] = {"imported": 0, "duplicates": 0, "rejected": 0, "labels": 0, "repaired": 0, "cut": False}
    left_out: Counter[str] = Counter()
    errors: list[dict[str, Any]] = []
    lines: list[str] = []
    for path in args.files:

        def progress(report: ImportReport, path: str = path) -> None:
            say(f"{path}: {report.imported:,} imported, {report.share:.0%}")

        report = import_file(
            found.traces,
            path,
            format=args.format,
            columns=columns or None,
            labels_as=args.labels_as,
            strict=args.strict,
            on_progress=progress,
        )
        said()
        document = report.as_json()
        for key in total:
            total[key] += document[key]
        left_out.update(document["left_out"])
        errors += [{**error, "file": path} for error in document["errors"]]
        lines += _import_lines(path, report, labels_as=args.labels_as)
    nothing = total["rejected"] > 0 and total["imported"] + total["duplicates"] == 0
    cut = total["cut"] = bool(total["cut"])
    document = {**total, "left_out": dict(left_out), "errors": errors}
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or cut else 0)


def _import_lines(path: str, report: ImportReport, *, labels_as: str | None) -> Iterable[str]:
    yield (
        f"{path}: {report.imported:,} imported, {report.duplicates:,} there already, {report.rejected:,} rejected, "
        f"{report.labels:,} labels"
    )
    for error in report.errors[:20]:
        yield f"  line {error.line}: {error.reason}"
    if report.rejected > 20:
        yield f"  … and {report.rejected - 20:,} more; --json lists the first {len(report.errors):,}"
    if report.cut:
        yield f"  {CUT}"
    if report.repaired:
        yield f"  {report.repaired:,} characters that no database can hold became U+FFFD"
    for name, count in report.left_out.items():
        yield f"  field {name!r} was not kept ({count:,} records)"
    if labels_as is None and report.imported:
        yield "  labels in the file, if any, were left out: --labels-as NAME brings them in"


def traces(args: Namespace) -> Answer:
    if args.label not in LABEL_STATES:
        raise BadInput(f"--label is one of {', '.join(LABEL_STATES)}, not {args.label!r}")
    if not 1 <= args.limit <= MOST_LINES:
        raise BadInput(f"--limit {args.limit} is not from 1 to {MOST_LINES:,}")
    found = store(args)
    since = sampling.window_start(sampling.parse_since(args.since), now())
    where = TraceFilter(since=since, undated=since is None, label=args.label, text=args.text)
    lines = found.traces.page(where, limit=args.limit).lines
    rows = [("time", "trace", "model", "gold", "answer")]
    rows += [
        (
            line.timestamp.strftime("%Y-%m-%d %H:%M") if line.timestamp else "–",
            visible(line.id),
            visible(line.model) or "–",
            line.gold or "–",
            visible(line.answer, 60).replace("\n", " "),
        )
        for line in lines
    ]
    document = {
        "total": found.traces.count(where),
        "traces": [
            {
                "trace_id": line.id,
                "timestamp": line.timestamp.isoformat() if line.timestamp else None,
                "model": line.model,
                "operation": line.operation,
                "gold": line.gold,
                "question": line.question,
                "answer": line.answer,
            }
            for line in lines
        ],
    }
    return Answer(document, f"{table(rows)}\n{len(lines)} of {document['total']:,}")


def sample(args: Namespace) -> Answer:
    from calibrate.steps.sample import draw

    at = now()
    since = sampling.window_start(sampling.parse_since(args.since), at)
    name = args.name or sampling.default_name(at)
    drawn = draw(
        store(args),
        name,
        size=args.size,
        design=args.design,
        by=args.by,
        where=TraceFilter(since=since, undated=since is None),
        seed=args.seed,
        now=at,
    )
    document = {
        "name": drawn.name,
        "size": drawn.size,
        "requested": args.size,
        "pool": drawn.pool,
        "undated": drawn.undated,
        "design": drawn.design,
        "seed": drawn.seed,
        "strata": {name: {"population": size, "drawn": n} for name, (size, n) in drawn.strata.items()},
    }
    text = f"{drawn.name}: {drawn.size} of {drawn.pool:,} traces ({drawn.design}, seed {drawn.seed})"
    if drawn.size < args.size:
        text += f"; {args.size:,} were asked for, and there are no more"
    if drawn.undated and since is not None:
        text += f"; {drawn.undated:,} undated traces were left out (--since all lets them in)"
    return Answer(document, text)


def labels(args: Namespace) -> Answer:
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
    document = {
        "labels": added,
        "unchanged": len(taken) - len(unknown) - added,
        "rejected": len(errors),
        "errors": errors,
        "cut": cut,
    }
    lines = [f"{added} labels added, {document['unchanged']} stood already, {len(errors)} rejected"]
    lines += [f"  line {e['line']}: {e['reason']}" if e["line"] else f"  {e['reason']}" for e in errors[:20]]
    if cut:
        lines.append(f"  {CUT}")
    nothing = bool(errors) and len(taken) == len(unknown)
    return Answer(document, "\n".join(lines), exit_code=2 if nothing or cut else 0)


def _export(args: Namespace) -> Answer:
    from calibrate.steps.detect import no_sample

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

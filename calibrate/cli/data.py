"""Verbs about traces, samples and labels."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, outfile, pairs, said, say, store, table
from calibrate.errors import BadInput
from calibrate.ingest import ImportReport, import_file
from calibrate.ingest.base import Rejected
from calibrate.ingest.labels import read_labels, write_labels
from calibrate.ingest.record import RECORD_FIELDS
from calibrate.sanitize import visible
from calibrate.stats.sampling import designs
from calibrate.types import Label, Sample, TraceFilter
from db import Store

MOST_LINES = 100_000
CUT = "the file could not be read to its end: what came before the damage is in the store; import a whole copy"
LABEL_STATES = ("any", "unlabelled", "labelled", "clean", "hallucinated", "unsure", "disputed")


def demo(args: Namespace) -> Answer:
    from calibrate.workflow.traces.demo import fill

    report = fill(store(args, create=True), now=now())
    return Answer(report.as_json(), f"{report.imported} sample traces with {report.labels} labels are in the store")


def import_files(args: Namespace) -> Answer:
    columns = pairs(args.column, "--column")
    for name in columns:
        if name not in RECORD_FIELDS:
            raise BadInput(
                f"--column {name}=…: a trace has no field {name!r}; it has {', '.join(sorted(RECORD_FIELDS))}"
            )
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
    since = designs.window_start(designs.parse_since(args.since), now())
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
    from calibrate.workflow.sampling.topup import top_up

    found, at = store(args), now()
    asked = [name for name in ("list", "more", "plan") if getattr(args, name) not in (None, False)]
    if len(asked) > 1:
        raise BadInput(f"--{asked[0]} and --{asked[1]} are two things to do: ask for one at a time")
    if args.list:
        return _listed(found, _named(args, "--list", "--list"))
    if args.more is not None:
        name = _named(args, "--more", "--more 50")
        return _topped_up(args, top_up(found, name, more=args.more, seed=args.seed, now=at))
    since = designs.window_start(designs.parse_since(args.since), at)
    where = TraceFilter(since=since, undated=since is None)
    if args.plan is not None:
        return _planned(found, where, args)
    drawn, why = _drawn(found, where, args, now=at)
    text = f"{drawn.name}: {drawn.size} of {drawn.pool:,} traces ({drawn.design}, seed {drawn.seed})"
    if why:
        text += f"; at random, as octave cannot draw them: {why}"
    if drawn.size < args.size:
        text += f"; {args.size:,} were asked for, and there are no more"
    if drawn.undated and since is not None:
        text += f"; {drawn.undated:,} undated traces were left out (--since all lets them in)"
    document = {**_sample_document(drawn), "requested": args.size, "why_random": why}
    return Answer(document, f"{text}\n{_strata(drawn)}".rstrip())


def _drawn(found: Store, where: TraceFilter, args: Namespace, *, now: datetime) -> tuple[Sample, str | None]:
    """The sample, and why it is at random though the window is scored."""
    from calibrate.workflow.sampling import sample as step
    from calibrate.workflow.sampling.frame import NoStrata

    def draw(design: str) -> Sample:
        cut = _cut(found, args.cut) if args.cut else None
        name = args.name or designs.default_name(now)
        return step.draw(
            found, name, size=args.size, design=design, by=args.by, where=where, seed=args.seed, now=now, cut=cut,
            fresh=design == "fresh-flagged",
        )  # fmt: skip

    if args.design != "auto":
        return draw(args.design), None
    try:
        return draw(step.usual_design(found, where)), None
    except NoStrata as error:
        return draw("random"), str(error).partition(": ")[0]


def _listed(found: Store, name: str) -> Answer:
    """The members of a sample, in labelling order."""
    from calibrate.workflow.detection.detect import no_sample

    sample = found.samples.get(name)
    if sample is None:
        raise no_sample(found, name)
    lines = found.samples.lines(sample.id)
    rows = [("trace", "stratum", "chance", "gold")]
    rows += [
        (visible(one.trace_id), visible(one.stratum), f"{one.inclusion_probability:.4g}", one.gold or "–")
        for one in lines
    ]
    return Answer({**_sample_document(sample), "members": [asdict(one) for one in lines]}, table(rows, right=(2,)))


def _named(args: Namespace, option: str, example: str) -> str:
    if not args.name:
        raise BadInput(f"{option} is of a sample that there is: name it, as in `sample 2026-W47 {example}`")
    return str(args.name)


def _cut(found: Store, given: str) -> designs.Cut:
    from calibrate.workflow.detection.configurations import resolve_config

    name, _, threshold = given.partition("=")
    try:
        return designs.Cut(resolve_config(found, name.strip()).id, float(threshold))
    except ValueError:
        raise BadInput(f"--cut {given!r} should read DETECTOR=THRESHOLD, like token_overlap=0.4") from None


def _topped_up(args: Namespace, sample: Sample) -> Answer:
    more = sample.options["top_ups"][-1]["more"]
    text = f"{sample.name}: {more} more of {sample.pool:,} traces, {sample.size} in all ({sample.design})"
    if more < args.more:
        text += f"; {args.more:,} were asked for, and there are no more"
    return Answer({**_sample_document(sample), "requested": args.more, "added": more}, f"{text}\n{_strata(sample)}")


def _sample_document(sample: Sample) -> dict[str, Any]:
    return {
        "name": sample.name,
        "size": sample.size,
        "pool": sample.pool,
        "undated": sample.undated,
        "design": sample.design,
        "seed": sample.seed,
        "strata": {
            name: {"population": size, "drawn": n, "inclusion_probability": n / size}
            for name, (size, n) in sample.strata.items()
        },
    }


def _strata(sample: Sample) -> str:
    """The strata of a sample that has several, and what one label of each stands for."""
    if len(sample.strata) < 2:
        return ""
    rows = [("stratum", "traces", "drawn", "one label stands for")]
    rows += [
        (visible(name, 40), f"{size:,}", f"{n:,}", f"{size / n:,.1f}" if n else "–")
        for name, (size, n) in sample.strata.items()
    ]
    return table(rows, right=(1, 2, 3))


def _planned(found: Store, where: TraceFilter, args: Namespace) -> Answer:
    from calibrate.workflow.sampling import sizing

    prevalence = sizing.last_prevalence(found)
    share = sizing.PREVALENCE if prevalence is None else prevalence
    plan = sizing.plan(found, where, wish=args.plan, precision=args.precision, prevalence=share, by=args.by)
    document = {
        "precision": args.precision,
        "halfwidth": args.plan,
        "flag_rate": plan.flag_rate,
        "detector": plan.detector,
        "sample": plan.sample,
        "labels": plan.labels,
        "caution": plan.caution,
    }
    rows = [("design", "labels needed")]
    rows += [(name, f"{n:,}" if n is not None else "more than there are") for name, n in plan.labels.items()]
    known = f"estimated from the labels of {plan.sample}" if plan.sample else "the share that is assumed hallucinated"
    head = (
        f"precision {args.precision:g} known to ±{args.plan:g}, for a threshold"
        f"{f' of {plan.detector}' if plan.detector else ''} that flags {plan.flag_rate:.2%} of the window ({known})"
    )
    lines = [head, table(rows, right=(1,)), *([f"caution: {plan.caution}"] if plan.caution else [])]
    return Answer(document, "\n".join(lines))


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
        lines.append(f"  {CUT}")
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

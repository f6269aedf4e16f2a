"""The verb about agreement between labellers."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.numbers import share
from calibrate.report.sentences import agreement as sentences
from calibrate.report.sentences.figures import interval
from calibrate.stats.labels.agreement import Agreement
from calibrate.types import Interval
from calibrate.workflow.labelling import agreement as step
from db import Store


def run(args: Namespace) -> Answer:
    if (args.action == "adjudicate") != (args.trace is not None):
        raise BadInput(
            "adjudicate takes a trace's id, like `agreement adjudicate t7 --verdict clean`; nothing else does"
        )
    actions = {"show": _show, "adjudicate": _adjudicate, "second-look": _second_look, "double": _double}
    return actions[args.action](open_store(args), args)


def _show(found: Store, args: Namespace) -> Answer:
    seen = step.look(found, args.sample)
    document = {
        "sample": args.sample,
        "design": seen.sample.design if seen.sample else None,
        "labellers": dict(seen.labellers),
        "overall": _document(seen.overall) if seen.overall else None,
        "pairs": [_document(pair) for pair in seen.pairs],
        "disputed": [{"trace_id": one.trace_id, "verdicts": dict(one.verdicts)} for one in seen.disputed],
        "adjudicated": seen.adjudicated,
    }
    if not seen.pairs or seen.overall is None:
        people = found.labels.labellers()
        who = "nobody has labelled yet" if not people else "no trace has labels of two people yet"
        return Answer(document, f"{who}: agreement needs two; `agreement double` draws {step.DOUBLE} to label twice")
    head = ("labellers", "traces", "unsure", "differ", "agree", "hallucinated too", "clean too", "alpha", "AC1")
    rows = [head, *map(_row, seen.pairs)]
    lines = [sentences.sentence(seen.overall), table(rows, right=range(1, len(head)))]
    lines += [f"{share(seen.overall.hallucinated or 0.0)} of these verdicts say hallucinated. {sentences.UNSURE}."]
    lines += [sentences.WHY_THEY_DIFFER]
    if seen.disputed:
        shown = ", ".join(one.trace_id for one in seen.disputed[:10])
        lines.append(f"{len(seen.disputed)} wait for `agreement adjudicate`: {shown}")
    return Answer(document, "\n".join(lines))


def _adjudicate(found: Store, args: Namespace) -> Answer:
    if args.verdict is None:
        raise BadInput("adjudicate needs --verdict: clean, hallucinated or unsure")
    pk = found.traces.find(args.trace)
    if pk is None:
        raise BadInput(f"there is no trace {args.trace!r} in the store; `traces` lists them")
    written = step.adjudicate(found, pk, args.verdict, by=user(), now=now(), note=args.note)
    document = {"trace_id": args.trace, "gold": args.verdict, "by": user(), "written": written}
    return Answer(
        document, f"{args.trace}: gold is {args.verdict}" + ("" if written else ", as you had decided already")
    )


def _second_look(found: Store, args: Namespace) -> Answer:
    if args.limit < 1:
        raise BadInput(f"--limit {args.limit} shows nothing: give 1 or more")
    seen = step.second_look(found, args.sample, limit=args.limit)
    suspects = [
        {
            "trace_id": one.row.trace_id,
            "gold": one.row.gold,
            "probability": one.doubt.probability,
            "reasons": [{"detector": r.detector, "score": r.value, "beyond": r.beyond} for r in one.doubt.reasons],
        }
        for one in seen.suspects
    ]
    document = {
        "sample": args.sample,
        "labels": seen.n,
        "positives": seen.positives,
        "auroc": seen.auroc,
        "detectors": list(seen.detectors),
        "suspects": suspects,
    }
    rows: list[tuple[str, ...]] = [("trace", "gold", "P(hallucinated)", "why")]
    rows += [
        (one.row.trace_id, str(one.row.gold), share(one.doubt.probability), "; ".join(sentences.doubts(one)))
        for one in seen.suspects
    ]
    return Answer(document, f"{table(rows, right=(2,))}\n{sentences.second_look(seen)}")


def _double(found: Store, args: Namespace) -> Answer:
    drawn = step.double(found, args.sample, size=args.size, name=args.name, seed=args.seed, now=now())
    counts = {kind: n for kind, (_, n) in drawn.strata.items()}
    document = {"name": drawn.name, "size": drawn.size, "seed": drawn.seed, "strata": counts}
    text = (
        f"{drawn.name}: {drawn.size} traces with one person's label, {counts['hallucinated']} of them hallucinated; "
        "now a second person labels them. No threshold can be tuned on it: it was drawn by its labels"
    )
    return Answer(document, text)


def _row(pair: Agreement) -> tuple[str, ...]:
    shares = (pair.raw, pair.positive, pair.negative)
    return (
        " / ".join(pair.labellers),
        f"{pair.traces:,}",
        f"{pair.unsure:,}",
        f"{pair.differ:,}",
        *("-" if one.value is None else f"{share(one.value)} ({interval(one)})" for one in shares),
        *(sentences.coefficient(one) for one in (pair.alpha, pair.ac1)),
    )


def _document(figures: Agreement) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Interval):
            return {"value": value.value, "low": value.low, "high": value.high}
        return list(value) if isinstance(value, tuple) else value

    return {field.name: plain(getattr(figures, field.name)) for field in fields(figures)}

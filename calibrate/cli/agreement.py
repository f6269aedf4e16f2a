"""`agreement`: how far labellers agree, and which labels to look at again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.labelling import agreement as sentences
from calibrate.stats.labels.agreement import Agreement
from calibrate.types import Interval
from calibrate.workflow.labelling import agreement as step
from calibrate.workflow.labelling.gold_agreement import GoldAgreement, gold_agreement
from calibrate.workflow.labelling.repeats import SelfAgreement, self_agreement
from db import Store

MOST_DISPUTED = 10  # on a terminal; --json lists all


@dataclass(frozen=True, slots=True)
class Disputed:
    trace_id: str
    verdicts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgreementDocument:
    """How far all labellers agree, each pair of them, and the traces that wait for a decision."""

    sample: str | None
    design: str | None
    labellers: Mapping[str, int]
    overall: Agreement | None
    pairs: Sequence[Agreement]
    disputed: Sequence[Disputed]
    adjudicated: int
    with_gold: Sequence[GoldAgreement]
    with_themselves: Sequence[SelfAgreement]


@dataclass(frozen=True, slots=True)
class AdjudicatedDocument:
    trace_id: str
    gold: str
    by: str
    written: bool


@dataclass(frozen=True, slots=True)
class Reason:
    detector: str
    score: float
    beyond: float


@dataclass(frozen=True, slots=True)
class Suspect:
    """A label that the detectors' scores speak against."""

    trace_id: str
    gold: str | None
    probability: float
    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class SecondLookDocument:
    sample: str | None
    labels: int
    positives: int
    auroc: float | None
    detectors: Sequence[str]
    suspects: Sequence[Suspect]


@dataclass(frozen=True, slots=True)
class DoubleDocument:
    """A sample to be labelled by a second person."""

    name: str
    size: int
    seed: int
    strata: Mapping[str, int]


def run(args: Namespace) -> Answer:
    if (args.action == "adjudicate") != (args.trace is not None):
        raise BadInput(
            "adjudicate takes a trace's id, like `agreement adjudicate t7 --verdict clean`; nothing else does"
        )
    actions = {"show": _show, "adjudicate": _adjudicate, "second-look": _second_look, "double": _double}
    return actions[args.action](open_store(args), args)


def _show(store: Store, args: Namespace) -> Answer:
    report = step.look(store, args.sample)
    document = AgreementDocument(
        sample=args.sample,
        design=report.sample.design if report.sample else None,
        labellers=dict(report.labellers),
        overall=report.overall,
        pairs=report.pairs,
        disputed=[Disputed(trace.trace_id, dict(trace.verdicts)) for trace in report.disputed],
        adjudicated=report.adjudicated,
        with_gold=gold_agreement(store, report.sample, report.readings) if report.readings else (),
        with_themselves=self_agreement(store, report.sample),
    )
    own = [sentences.gold_agreement(figure) for figure in document.with_gold]
    own += [sentences.self_agreement(figure) for figure in document.with_themselves]
    if not report.pairs or report.overall is None:
        labelled = store.labels.labellers()
        who = "no trace has labels of two people yet" if labelled else "nobody has labelled yet"
        needs = f"{who}: agreement needs two; `agreement double` draws {step.DOUBLE} to label twice"
        return Answer(document, "\n".join([needs, *own]))
    head = ("labellers", "traces", "unsure", "differ", "agree", "hallucinated too", "clean too", "alpha", "AC1")
    lines = [
        sentences.sentence(report.overall),
        table([head, *map(_row, report.pairs)], right=range(1, len(head))),
        f"{numbers.share(report.overall.hallucinated or 0.0)} of these verdicts say hallucinated. {sentences.UNSURE}.",
        sentences.WHY_THEY_DIFFER,
        *own,
    ]
    if report.disputed:
        names = ", ".join(trace.trace_id for trace in report.disputed[:MOST_DISPUTED])
        lines.append(f"{len(report.disputed)} wait for `agreement adjudicate`: {names}")
    return Answer(document, "\n".join(lines))


def _row(pair: Agreement) -> tuple[str, ...]:
    counts = (pair.traces, pair.unsure, pair.differ)
    shares = (pair.raw, pair.positive, pair.negative)
    coefficients = (pair.alpha, pair.ac1)
    return (
        " / ".join(pair.labellers),
        *map(numbers.count, counts),
        *map(_estimate, shares),
        *map(sentences.coefficient, coefficients),
    )


def _estimate(figure: Interval) -> str:
    return "–" if figure.value is None else numbers.estimate(figure.value, figure.low, figure.high)


def _adjudicate(store: Store, args: Namespace) -> Answer:
    if args.verdict is None:
        raise BadInput("adjudicate needs --verdict: clean, hallucinated or unsure")
    pk = store.traces.find(args.trace)
    if pk is None:
        raise BadInput(f"there is no trace {args.trace!r} in the store; `traces` lists them")
    written = step.adjudicate(store, pk, args.verdict, by=user(), now=now(), note=args.note)
    document = AdjudicatedDocument(trace_id=args.trace, gold=args.verdict, by=user(), written=written)
    return Answer(
        document, f"{args.trace}: gold is {args.verdict}" + ("" if written else ", as you had decided already")
    )


def _second_look(store: Store, args: Namespace) -> Answer:
    if args.limit < 1:
        raise BadInput(f"--limit {args.limit} shows nothing: give 1 or more")
    report = step.second_look(store, args.sample, limit=args.limit)
    suspects = [
        Suspect(
            trace_id=suspect.row.trace_id,
            gold=suspect.row.gold,
            probability=suspect.doubt.probability,
            reasons=[Reason(reason.detector, reason.value, reason.beyond) for reason in suspect.doubt.reasons],
        )
        for suspect in report.suspects
    ]
    document = SecondLookDocument(
        sample=args.sample,
        labels=report.n,
        positives=report.positives,
        auroc=report.auroc,
        detectors=report.detectors,
        suspects=suspects,
    )
    rows: list[tuple[str, ...]] = [("trace", "gold", "P(hallucinated)", "why")]
    for suspect in report.suspects:
        why = "; ".join(sentences.doubts(suspect))
        rows.append((suspect.row.trace_id, str(suspect.row.gold), numbers.share(suspect.doubt.probability), why))
    return Answer(document, f"{table(rows, right=(2,))}\n{sentences.second_look(report)}")


def _double(store: Store, args: Namespace) -> Answer:
    sample = step.double(store, args.sample, size=args.size, name=args.name, seed=args.seed, now=now())
    drawn = {verdict: n for verdict, (_, n) in sample.strata.items()}
    text = (
        f"{sample.name}: {numbers.count(sample.size, 'trace')} with one person's label, "
        f"{numbers.count(drawn['hallucinated'])} of them hallucinated; "
        "now a second person labels them. No threshold can be tuned on it: it was drawn by its labels"
    )
    return Answer(DoubleDocument(sample.name, sample.size, sample.seed, drawn), text)

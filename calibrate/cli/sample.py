"""`sample`: draw traces for labelling, top a sample up, list its members, or plan how many labels to ask for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.progress import Advance, progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.labelling import drawing, labels
from calibrate.report.sentences.traces import imports
from calibrate.sanitize import one_line
from calibrate.stats.sampling import designs
from calibrate.types import Sample, Statement, TraceFilter
from calibrate.workflow.detection.configurations import resolve_config
from calibrate.workflow.detection.detect import no_sample
from calibrate.workflow.labelling.assignment import assign, sharing_of
from calibrate.workflow.sampling import sample as step
from calibrate.workflow.sampling import sizing
from calibrate.workflow.sampling.frame import NoStrata
from calibrate.workflow.sampling.pace import Pace, team_pace, traces_for
from calibrate.workflow.sampling.topup import top_up
from calibrate.workflow.traces.stated_samples import state_again
from db import Store
from db.labelling.assignments import Assignment

SIZE = 300


@dataclass(frozen=True, slots=True)
class StratumDocument:
    population: int
    drawn: int
    inclusion_probability: float


@dataclass(frozen=True)
class SampleDocument:
    """A sample and how it was drawn."""

    name: str
    size: int
    pool: int
    undated: int
    design: str
    seed: int
    strata: Mapping[str, StratumDocument]

    @classmethod
    def of(cls, sample: Sample, **more: Any) -> Self:
        return cls(
            name=sample.name,
            size=sample.size,
            pool=sample.pool,
            undated=sample.undated,
            design=sample.design,
            seed=sample.seed,
            strata={name: StratumDocument(size, n, n / size) for name, (size, n) in sample.strata.items()},
            **more,
        )


@dataclass(frozen=True)
class DrawnDocument(SampleDocument):
    """`pace` is what --minutes reckoned with, and `halfwidth` what so many labels will know a precision to."""

    requested: int
    why_random: str | None
    assigned: str
    overlap: float
    pace: Pace | None
    halfwidth: float | None


@dataclass(frozen=True)
class ToppedUpDocument(SampleDocument):
    requested: int
    added: int


@dataclass(frozen=True)
class ListedDocument(SampleDocument):
    members: Sequence[object]


@dataclass(frozen=True)
class StatedDocument(SampleDocument):
    """`stated`: all that was said of its design, the newest last."""

    before: str
    stated: Sequence[Statement]


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """How many labels a design needs to measure a precision to ± `halfwidth`."""

    precision: float
    halfwidth: float
    flag_rate: float
    detector: str | None
    sample: str | None
    labels: Mapping[str, int | None]
    caution: str | None


def run(args: Namespace) -> Answer:
    store, at = open_store(args), now()
    actions = [name for name in ("list", "more", "state", "plan") if getattr(args, name) not in (None, False)]
    if len(actions) > 1:
        raise BadInput(f"--{actions[0]} and --{actions[1]} are two things to do: ask for one at a time")
    if args.list:
        return _list(store, _require_name(args, "--list", "--list"))
    if args.more is not None:
        name = _require_name(args, "--more", "--more 50")
        return _report_top_up(args, top_up(store, name, more=args.more, seed=args.seed, now=at))
    if args.state is not None:
        return _state(store, _require_name(args, "--state", "--state flagged"), args.state)
    since = designs.window_start(designs.parse_since(args.since), at)
    where = _narrow(TraceFilter(since=since, undated=since is None), args.where)
    if args.plan is not None:
        return _plan(store, where, args)
    sharing = _sharing(args)
    pace = team_pace(store) if args.minutes is not None else None
    size = _size(args, pace, sharing)
    halfwidth = _halfwidth(store, where, args, size)
    stopped = when_stopped(lambda: "no sample was drawn; the same command draws it")
    with stopped, progress(args, "ranking") as advance:
        sample, why_random = _draw(store, where, args, size, advance, now=at)
    if sharing.mode != "everyone":
        sharing = assign(store, sample, sharing.mode, overlap=sharing.overlap, by=user(), now=at)
    text = (
        f"{sample.name}: {numbers.count(sample.size)} of {numbers.count(sample.pool, 'trace')} "
        f"({sample.design}, seed {sample.seed})"
    )
    if why_random:
        text += f"; drawn at random, because octave cannot draw these traces: {why_random}"
    if sample.size < size and pace is None:
        text += f"; {numbers.count(size)} were asked for, and there are no more"
    if sample.undated and since is not None:
        text += f"; {numbers.count(sample.undated, 'undated trace')} left out (--since all includes them)"
    lines = [text]
    if pace is not None:
        promise = f"; {drawing.precision_known(halfwidth)}" if halfwidth is not None else ""
        lines.append(drawing.pace(pace) + promise)
    if sharing.mode != "everyone":
        lines.append(drawing.shared(sharing.mode, sharing.overlap))
    document = DrawnDocument.of(
        sample, requested=size, why_random=why_random, assigned=sharing.mode, overlap=sharing.overlap, pace=pace,
        halfwidth=halfwidth,
    )  # fmt: skip
    return Answer(document, "\n".join(filter(None, [*lines, _strata(sample)])))


def _narrow(where: TraceFilter, conditions: Sequence[str]) -> TraceFilter:
    """The filter with conditions like `model=m-2`, which must all hold."""
    attributes = parse_pairs(conditions, "--where")
    models, operations = (tuple(filter(None, [attributes.pop(name, None)])) for name in ("model", "operation"))
    return replace(where, models=models, operations=operations, attributes=attributes)


def _sharing(args: Namespace) -> Assignment:
    """How the sample is to be shared. Raises BadInput for options that say different things."""
    if args.labellers is not None and (args.minutes is None or args.assign != "split"):
        raise BadInput("--labellers counts who shares the work: give it with --minutes and --assign split")
    return sharing_of(args.assign or "everyone", args.overlap)


def _size(args: Namespace, pace: Pace | None, sharing: Assignment) -> int:
    """How many traces are asked for: those of --size, or those that fit into --minutes."""
    if pace is None:
        return SIZE if args.size is None else int(args.size)
    if args.size is not None:
        raise BadInput("--size and --minutes both say how many traces to draw: give one of them")
    names = [name.strip() for name in (args.labellers or "").split(",") if name.strip()]
    overlap = None if sharing.mode == "everyone" else sharing.overlap
    return traces_for(pace, args.minutes, people=max(1, len(set(names))), overlap=overlap)


def _halfwidth(store: Store, where: TraceFilter, args: Namespace, size: int) -> float | None:
    """What so many labels will know a precision to, by the usual design or the one that is asked for."""
    if args.minutes is None or args.design in ("uncertain", "fresh-flagged"):
        return None
    design = step.usual_design(store, where) if args.design == "auto" else args.design
    share = sizing.last_prevalence(store) or sizing.PREVALENCE
    plan = sizing.plan(store, where, wish=0.1, prevalence=share, by=args.by, n=size)
    return plan.halfwidth.get(design, plan.halfwidth["random"])


def _draw(
    store: Store, where: TraceFilter, args: Namespace, size: int, advance: Advance, *, now: datetime
) -> tuple[Sample, str | None]:
    """Draw the sample. Also returns why it is random where the usual design, octave, was not possible."""

    def draw(design: str) -> Sample:
        return step.draw(
            store,
            designs.default_name(now) if args.name is None else args.name,
            size=size,
            design=design,
            by=args.by,
            where=where,
            seed=args.seed,
            now=now,
            cut=_parse_cut(store, args.cut) if args.cut else None,
            fresh=design == "fresh-flagged",
            on_progress=advance,
        )

    if args.design != "auto":
        return draw(args.design), None
    try:
        return draw(step.usual_design(store, where)), None
    except NoStrata as error:
        return draw("random"), str(error).partition(": ")[0]


def _list(store: Store, name: str) -> Answer:
    """List the members of a sample in labelling order."""
    sample = store.samples.get(name)
    if sample is None:
        raise no_sample(store, name)
    members = store.samples.lines(sample.id)
    rows = [("trace", "stratum", "chance", "gold")]
    rows += [
        (
            one_line(member.trace_id),
            one_line(member.stratum),
            numbers.number(member.inclusion_probability),
            member.gold or "–",
        )
        for member in members
    ]
    return Answer(ListedDocument.of(sample, members=members), table(rows, right=(2,)))


def _require_name(args: Namespace, option: str, example: str) -> str:
    if not args.name:
        raise BadInput(f"{option} needs an existing sample: name it, as in `sample 2026-W47 {example}`")
    return str(args.name)


def _state(store: Store, name: str, design: str) -> Answer:
    sample = store.samples.get(name)
    if sample is None:
        raise no_sample(store, name)
    before = sample.design
    stated = state_again(store, sample, design=design, by=user(), now=now())
    document = StatedDocument.of(stated, before=before, stated=stated.options.stated)
    return Answer(document, f"{one_line(name, 80)}: {imports.restated(before, stated)}")


def _parse_cut(store: Store, text: str) -> designs.Cut:
    name, _, threshold = text.partition("=")
    try:
        return designs.Cut(resolve_config(store, name.strip()).id, float(threshold))
    except ValueError:
        raise BadInput(f"--cut {text!r} should read DETECTOR=THRESHOLD, like token_overlap=0.4") from None


def _report_top_up(args: Namespace, sample: Sample) -> Answer:
    added = sample.options.top_ups[-1].more
    text = (
        f"{sample.name}: {numbers.count(added)} more of {numbers.count(sample.pool, 'trace')}, "
        f"{numbers.count(sample.size)} in all ({sample.design})"
    )
    if added < args.more:
        text += f"; {numbers.count(args.more)} were asked for, and there are no more"
    document = ToppedUpDocument.of(sample, requested=args.more, added=added)
    return Answer(document, f"{text}\n{_strata(sample)}")


def _strata(sample: Sample) -> str:
    """The strata of a sample that has several, and how many traces one label of each stands for."""
    if len(sample.strata) < 2:
        return ""
    rows = [("stratum", "traces", "drawn", "one label stands for")]
    rows += [
        (one_line(name, 40), numbers.count(size), numbers.count(n), numbers.decimals(size / n, 1) if n else "–")
        for name, (size, n) in sample.strata.items()
    ]
    return table(rows, right=(1, 2, 3))


def _plan(store: Store, where: TraceFilter, args: Namespace) -> Answer:
    prevalence = sizing.last_prevalence(store)
    share = sizing.PREVALENCE if prevalence is None else prevalence
    plan = sizing.plan(store, where, wish=args.plan, precision=args.precision, prevalence=share, by=args.by)
    document = PlanDocument(
        precision=args.precision,
        halfwidth=args.plan,
        flag_rate=plan.flag_rate,
        detector=plan.detector,
        sample=plan.sample,
        labels=plan.labels,
        caution=labels.doubt(plan.doubt),
    )
    rows = [("design", "labels needed")]
    rows += [(name, "more than there are" if n is None else numbers.count(n)) for name, n in plan.labels.items()]
    source = f"estimated from the labels of {plan.sample}" if plan.sample else "the share assumed to be hallucinated"
    head = (
        f"precision {args.precision:g} measured to ±{args.plan:g}, for a threshold"
        f"{f' of {plan.detector}' if plan.detector else ''} that flags {numbers.share(plan.flag_rate)} of the window "
        f"({source})"
    )
    lines = [head, table(rows, right=(1,)), *([f"caution: {document.caution}"] if document.caution else [])]
    return Answer(document, "\n".join(lines))

"""`detect`: score traces with detectors."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrate import settings
from calibrate.backends.chat import Estimate
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.progress import progress
from calibrate.detectors.base import Detector
from calibrate.engines.choice import EngineChoice, choose_engine
from calibrate.errors import TouchstoneError
from calibrate.report import numbers
from calibrate.report.numbers import count
from calibrate.report.sentences.detection import detection as sentences
from calibrate.report.sentences.detection import readiness as ready_words
from calibrate.workflow.detection import detect as step
from calibrate.workflow.detection import detectors as about
from calibrate.workflow.detection.outcomes import failed_everywhere, failures
from calibrate.workflow.detection.readiness import Group, Readiness, by_cause, by_field, readiness, total_of
from db import Store
from db.runs import Run

MOST_REASONS = 3  # on a terminal; --json has all


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did with one detector. `failed_on_all`: it failed, and no trace of the scope has a score of it.
    `unavailable` says why it could not run, and the remedy."""

    scored: int
    abstained: int
    failed: int
    refusals: int
    reused: int
    seconds: float
    why: Mapping[str, int]
    usage: Mapping[str, Any]
    failed_on_all: bool
    unavailable: str | None

    @classmethod
    def of(cls, tally: Mapping[str, Any]) -> Outcome:
        """Read a run's tally; runs from before refusals and usage were counted have neither."""
        return cls(
            scored=tally.get("scored", 0),
            abstained=tally.get("abstained", 0),
            failed=tally.get("failed", 0),
            refusals=tally.get("refusals", 0),
            reused=tally.get("reused", 0),
            seconds=tally.get("seconds", 0),
            why=tally.get("why", {}),
            usage=tally.get("usage", {}),
            failed_on_all=failed_everywhere(tally),
            unavailable=tally.get("unavailable"),
        )

    @property
    def attempted(self) -> int:
        return self.scored + self.abstained + self.failed + self.refusals


@dataclass(frozen=True, slots=True)
class DetectDocument:
    """A run. `status` is done, incomplete (a detector failed on every trace or could not run), or else it did not go to
    its end; `retry` is the command that runs again what failed. `unavailable` are those of `all` that were left out,
    each with what it needs; `notes` say what `--again failed` did again and what not."""

    run: int
    status: str
    detectors: Mapping[str, Outcome]
    retry: str | None
    unavailable: Mapping[str, str]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class EngineDocument:
    """What one detector would take on an engine: `workers` processes, and the `memory` of all of them in bytes. None
    where no run has told yet, or a cluster's size is not known."""

    workers: int | None
    seconds: float | None
    memory: int | None


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """What one detector would take: `seconds` on the engine that the run would have, then on each; `asks` a chat
    endpoint or not, reckoned from `looked_at` of the traces."""

    traces: int
    seconds: float | None
    engines: Mapping[str, EngineDocument]
    asks: bool
    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    looked_at: int
    unavailable: str | None


@dataclass(frozen=True, slots=True)
class EstimateDocument:
    estimate: Mapping[str, PlanDocument]


@dataclass(frozen=True, slots=True)
class ReadinessDocument:
    """What is known of one detector before it runs: `able` of the `total` traces have what it reads and, as far
    as it was run, were no refusals and none that it abstained on."""

    title: str
    group: str
    total: int
    able: int
    lacks: Mapping[str, int]
    how: str | None
    standing: str
    scored: int
    to_do: int
    seconds: float | None
    cost: float | None
    failed: str | None


@dataclass(frozen=True, slots=True)
class ListDocument:
    detectors: Mapping[str, ReadinessDocument]


def run(args: Namespace) -> Answer:
    store = open_store(args)
    labelled = args.labelled or (args.sample is None and not args.everything)
    scope = step.scope_of(sample=args.sample, labelled=labelled, everything=args.everything)
    params = parse_pairs(args.param, "--param")
    if args.list:
        return _list(store, scope, step.chosen_of(args.detectors or ["all"], params, imported=True))
    detectors, again = step.chosen_of(args.detectors, params), args.again == "failed"
    engine = choose_engine(args.engine, args.workers, args.address)
    if any(about.asks_chat(detector) for detector in detectors):
        settings.chat()  # raises for a setting that is wrong; without an endpoint the other detectors still run
    settings.devices()  # raises likewise
    if args.estimate:
        return _estimate(store, detectors, scope, again=again, engine=engine)
    left_out = step.unavailable_here(store, detectors) if args.detectors == ["all"] else {}
    queued = step.queue(store, args.detectors, scope, params=params, budget=args.budget, again=again, engine=engine)
    with progress(args, "scoring", "score") as advance:
        try:
            finished = step.work(store, run_id=queued.id, on_progress=advance)
        except KeyboardInterrupt as stop:
            run = store.runs.get(queued.id)
            raise type(stop)(sentences.stopped(queued.id, run.done, run.total)) from None
    if finished is None:
        return Answer(
            DetectDocument(queued.id, queued.status, {}, None, left_out),
            f"run {queued.id} was taken by a worker that was waiting",
        )
    return _report(finished, args.param, left_out, _left_alone(store, finished, args.param, detectors) if again else ())


def _list(store: Store, scope: Mapping[str, Any], detectors: Sequence[Detector]) -> Answer:
    """Say which detectors can run on these traces, which the traces cannot feed, and which need setup."""
    rows = readiness(store, scope, detectors)
    document = ListDocument({row.detector.name: _readiness(row) for row in rows})
    if not any(row.total for row in rows):
        return Answer(document, ready_words.no_traces(is_labelled="labelled" in scope))
    ready = [row for row in rows if row.group == Group.READY]
    lines = [f"{ready_words.HEADINGS[Group.READY]} ({count(len(ready))})"]
    if ready:
        head = ("detector", "can score", "time", "cost", "scores")
        cells = [
            (row.detector.name, ready_words.can_score(row), ready_words.time(row), ready_words.cost(row),
             ready_words.failed(row) or ready_words.standing(row))
            for row in ready
        ]  # fmt: skip
        lines += [table([head, *cells], right=range(1, 4))]
    if due := [row for row in ready if row.is_due]:
        lines += [f"To run: {' '.join(row.detector.name for row in due)} · {ready_words.of_run(total_of(due))}"]
    if imported := [row for row in rows if row.group == Group.IMPORTED]:
        lines += ["", ready_words.HEADINGS[Group.IMPORTED]]
        lines += [f"- {row.detector.name}: {ready_words.imported(row)}" for row in imported]
    if fields := by_field(rows):
        lines += ["", ready_words.HEADINGS[Group.LACKS]]
        for name, group in fields.items():
            waiting = ready_words.waiting_for(group)
            lines += [f"- {ready_words.lacking(name, group)}. {ready_words.how_to_log(name)} For {waiting}."]
        lines += [f"How to log them: {ready_words.DOCUMENT}"]
    if causes := by_cause(rows):
        lines += ["", ready_words.HEADINGS[Group.SETUP]]
        lines += [f"- {ready_words.setup(why)} For {ready_words.waiting_for(group)}." for why, group in causes.items()]
    return Answer(document, "\n".join(lines))


def _readiness(row: Readiness) -> ReadinessDocument:
    return ReadinessDocument(
        title=row.detector.title,
        group=str(row.group),
        total=row.total,
        able=row.able,
        lacks=row.lacks,
        how=row.how,
        standing=str(row.standing),
        scored=row.coverage.scored,
        to_do=row.coverage.to_do,
        seconds=row.plan.seconds,
        cost=row.plan.estimate.cost if row.plan.estimate else None,
        failed=ready_words.failed(row) or None,
    )


def _estimate(
    store: Store, detectors: Sequence[Detector], scope: Mapping[str, Any], *, again: bool, engine: EngineChoice
) -> Answer:
    """Say what the run would take, without running it."""
    plans = {detector.name: _plan(store, detector, scope, again=again, engine=engine) for detector in detectors}
    names = list(next(iter(plans.values())).engines)
    head = ("detector", "traces", *(f"time, {name}" for name in names), "memory")
    rows = [(name, count(plan.traces), *_engine_cells(plan)) for name, plan in plans.items()]
    lines = [table([head, *rows, ("all", "", *_totals(plans, names), "")], right=range(1, len(head)))]
    if any(plan.asks for plan in plans.values()):
        head = ("detector", "requests", "answered already", "tokens in", "tokens out", "cost at most")
        requests = [_request_row(name, plan) for name, plan in plans.items() if plan.asks]
        lines += ["", table([head, *requests], right=range(1, 6))]
    lines += [f"{name}: {plan.unavailable}" for name, plan in plans.items() if plan.unavailable]
    if any(plan.traces and plan.seconds is None for plan in plans.values()):
        lines.append(sentences.UNTIMED)
    return Answer(EstimateDocument(plans), "\n".join([*lines, "Nothing was scored and nothing sent."]))


def _plan(
    store: Store, detector: Detector, scope: Mapping[str, Any], *, again: bool, engine: EngineChoice
) -> PlanDocument:
    covered = about.coverage(store, detector, scope)
    plan = about.plan(store, detector, scope, covered, again=again, engine=engine)
    estimate = plan.estimate or Estimate(0, 0, 0, 0, None)
    choices = [EngineChoice("local"), EngineChoice("processes", engine.workers)]
    choices += [engine] if engine.name == "ray" else []
    return PlanDocument(
        traces=plan.traces,
        seconds=plan.seconds,
        engines={choice.name: _on_engine(choice, detector, plan) for choice in choices},
        asks=plan.estimate is not None,
        requests=estimate.requests,
        cached=estimate.cached,
        prompt_tokens=estimate.prompt_tokens,
        completion_tokens=estimate.completion_tokens,
        cost=estimate.cost,
        looked_at=plan.looked_at,
        unavailable=about.status(store, detector).how,
    )


def _on_engine(engine: EngineChoice, detector: Detector, plan: about.Plan) -> EngineDocument:
    workers, times = about.workers_for(engine, detector, plan.traces), about.speedup(engine, detector, plan.traces)
    if workers is None or times is None:
        return EngineDocument(None, None, None)
    seconds = None if plan.rate is None else plan.traces / (plan.rate * times)
    return EngineDocument(max(1, workers), seconds, None if plan.memory is None else plan.memory * max(1, workers))


def _engine_cells(plan: PlanDocument) -> tuple[str, ...]:
    if not plan.traces:
        return ("",) * (len(plan.engines) + 1)
    times = [numbers.UNKNOWN if on.seconds is None else numbers.duration(on.seconds) for on in plan.engines.values()]
    most = max((on.memory for on in plan.engines.values() if on.memory), default=None)
    return (*times, numbers.UNKNOWN if most is None else numbers.size(most))


def _totals(plans: Mapping[str, PlanDocument], names: Sequence[str]) -> Iterator[str]:
    """The time of all detectors with each engine: they run one after another."""
    for name in names:
        seconds = [plan.engines[name].seconds for plan in plans.values() if plan.traces]
        timed = [value for value in seconds if value is not None]
        if len(timed) == len(seconds):
            yield numbers.duration(sum(timed)) if timed else ""
        else:
            yield f"at least {numbers.duration(sum(timed))}" if timed else numbers.UNKNOWN


def _request_row(name: str, plan: PlanDocument) -> tuple[str, ...]:
    amounts = (plan.requests, plan.cached, plan.prompt_tokens, plan.completion_tokens)
    return (name, *map(count, amounts), numbers.money(plan.cost))


def _left_alone(store: Store, run: Run, params: Sequence[str], detectors: Sequence[Detector]) -> list[str]:
    """Say of each detector what `--again failed` did again and what not."""
    tallies = {name: Outcome.of(tally) for name, tally in run.counts.items()}
    return [
        sentences.again(about.left_alone(store, detector, run.scope), tally.attempted, run.scope, params)
        for detector in detectors
        if (tally := tallies.get(detector.name)) is not None and not tally.unavailable
    ]


def _report(run: Run, params: Sequence[str], left_out: Mapping[str, str], notes: Sequence[str]) -> Answer:
    """What the run did. Exit code 2 where a detector that was named cannot run, 1 where one failed on every trace."""
    if run.status == "failed":
        raise TouchstoneError(f"run {run.id} failed: {run.error}")
    outcomes = {name: Outcome.of(tally) for name, tally in run.counts.items()}
    rows: list[tuple[str, ...]] = [("detector", "scored", "reused", "abstained", "refusals", "failed", "seconds", "")]
    for name, outcome in outcomes.items():
        if outcome.unavailable:
            continue
        why = "; ".join(f"{reason} ({n})" for reason, n in list(outcome.why.items())[:MOST_REASONS])
        amounts = (outcome.scored, outcome.reused, outcome.abstained, outcome.refusals, outcome.failed)
        rows.append((name, *map(count, amounts), numbers.decimals(outcome.seconds, 1), why))
    state = "" if run.status == "done" else f" ({run.status})"
    lines = [f"run {run.id}{state}", table(rows, right=range(1, 7)), *_spent(outcomes)]
    lines += notes
    lines += [sentences.unavailable(names, why) for why, names in step.by_reason(left_out).items()]
    broken = failures(run)
    retry = sentences.retry(broken, run.scope, params) if broken else None
    if retry is not None:
        lines += [*map(sentences.failed, broken), f"Mend that, then run `{retry}`."]
    document = DetectDocument(run.id, run.status, outcomes, retry, left_out, notes)
    exit_code = 2 if any(failure.unavailable for failure in broken) else 1 if broken else 0
    return Answer(document, "\n".join(lines), exit_code=exit_code)


def _spent(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    for name, outcome in outcomes.items():
        usage = outcome.usage or {}
        if usage.get("requests") or usage.get("cached"):
            tokens = count(usage["prompt_tokens"] + usage["completion_tokens"], "token")
            cost = "price unknown" if usage["cost"] is None else numbers.money(usage["cost"])
            reused = f", {count(usage['cached'], 'answer')} from the cache" if usage["cached"] else ""
            yield f"{name} sent {count(usage['requests'], 'request')}: {tokens}, {cost}{reused}"

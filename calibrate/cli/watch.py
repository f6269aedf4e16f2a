"""`watch`: score and decide new traces as they come into the store."""

from __future__ import annotations

import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.output import table
from calibrate.cli.progress import progress
from calibrate.cli.signals import raise_if_stopped
from calibrate.errors import BadInput, StoreReplaced, TouchstoneError
from calibrate.ingest.systems import open_annotator
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.pulls import annotation_line
from calibrate.report.sentences.watching import live
from calibrate.report.tables.column import cells
from calibrate.report.tables.live import columns
from calibrate.runtime import load
from calibrate.runtime.alerts import check_trace_url
from calibrate.stats.sampling import designs
from calibrate.types import Interval, TraceFilter
from calibrate.webhook import check_url
from calibrate.workflow.traces.logged import take_logged
from calibrate.workflow.watching.annotating import Annotating
from calibrate.workflow.watching.live import LiveThreshold
from calibrate.workflow.watching.new_models import new_models
from calibrate.workflow.watching.telling import Teller
from calibrate.workflow.watching.watch import Look, Watcher
from calibrate.workflow.week import standing as standings
from db import Store

WEBHOOK = "TOUCHSTONE_ALERTS_WEBHOOK"
LAST_ALERTS = 10.0  # seconds that alerts under way may take when watching ends
LAST_ANNOTATIONS = 60.0  # the same of verdicts for other systems
MOST_PROBLEMS = 3


@dataclass(frozen=True, slots=True)
class SentAlerts:
    """Alerts that the webhook took since the command began, and those that are kept for it, with the reason."""

    sent: int
    waiting: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class AnnotatedSystem:
    """Verdicts that a system took since the command began, that wait for it, and that it will never have."""

    written: int
    waiting: int
    given_up: int
    problem: str | None


@dataclass(frozen=True)
class WatchDocument:
    """What the last look decided. `tiers` counts the traces by tier, `unscored` those that nothing could score."""

    version: int
    decided: int
    tiers: Mapping[str, int]
    unscored: int
    scores: Mapping[str, object]
    undecided: int
    waiting: int
    problems: Mapping[str, int]
    undated: int


@dataclass(frozen=True)
class AlertingDocument(WatchDocument):
    alerts: SentAlerts


@dataclass(frozen=True)
class AnnotatingDocument(WatchDocument):
    annotated: Mapping[str, AnnotatedSystem]
    alerts: SentAlerts | None = None


@dataclass(frozen=True, slots=True)
class ThresholdDocument:
    """One live threshold. `flagged` and `hallucinated` count the labels behind `precision` where they are known to be
    flagged, else `labels` of which `positives` are hallucinated; `flags` are traces of the last 30 days."""

    name: str
    tier: str
    promised: float | None
    precision: Interval
    flagged: int | None
    hallucinated: int | None
    labels: int
    positives: int
    since: datetime | None
    until: datetime | None
    by_recheck: bool
    state: str | None
    drift: str | None
    models: Sequence[str]
    checked_at: datetime
    flags: int
    due: str | None
    segment: str | None
    why: str


@dataclass(frozen=True, slots=True)
class NewModelDocument:
    """A model that the release does not know; `labels` of its answers tell a precision, None: more than there are."""

    model: str
    share: float
    labels: int | None


@dataclass(frozen=True, slots=True)
class StatusDocument:
    version: int | None
    thresholds: Sequence[ThresholdDocument]
    new_models: Sequence[NewModelDocument]


def run(args: Namespace) -> Answer:
    if args.status:
        return _status(open_store(args))
    if not 0 < args.every < math.inf:
        raise BadInput(f"--every {args.every:g}: it is a number of seconds above 0")
    span = designs.parse_since(args.since)
    store = open_store(args)
    pinned = load(args.file) if args.file else None
    alerts = _teller(args, store)
    systems = _annotating(args, store)

    def wake() -> None:
        for system in systems:
            system.wake()

    def where() -> TraceFilter:
        since = designs.window_start(span, now())
        return TraceFilter(since=since, undated=since is None)

    def look() -> Look:
        take_logged(store, now=now())
        with progress(args, "deciding") as advance:

            def on_progress(done: int, total: int) -> None:
                advance(done, total)
                _touch(args.alive)

            latest = watcher.look(on_progress)
        _touch(args.alive)
        return latest

    try:
        offer = (lambda *_: alerts.wake()) if alerts else None
        watcher = Watcher(
            store, where=where, now=now, pinned=pinned, offer=offer, on_missing=args.on_missing,
            targets=[system.target for system in systems], annotated=wake,
        )  # fmt: skip
        if not args.once:
            _repeat(look, args.every)
        last = look()
    finally:
        if alerts:
            alerts.close(LAST_ALERTS)
        for system in systems:
            system.close(LAST_ANNOTATIONS)
    sent = SentAlerts(alerts.told, store.outbox.count(), alerts.problem) if alerts else None
    tallies = store.annotations.tally()
    annotated = {
        system.target: AnnotatedSystem(
            system.written,
            tallies[system.target].waiting if system.target in tallies else 0,
            tallies[system.target].given_up if system.target in tallies else 0,
            system.problem,
        )
        for system in systems
    }
    return _report(last, sent, annotated, undated=store.traces.undated(where()) if span is not None else 0)


def _status(store: Store) -> Answer:
    """What the Watch page shows, from the same function."""
    at = now()
    standing, models = standings.look(store, now=at), new_models(store)
    document = StatusDocument(
        standing.version,
        [_threshold(row) for row in standing.thresholds],
        [NewModelDocument(model.seen.name, model.seen.share, model.labels) for model in models],
    )
    if standing.version is None:
        return Answer(document, "nothing is live yet: `choose` thresholds and `release` them")
    shown = columns(at)
    lines = [f"v{standing.version} is live"]
    if standing.thresholds:
        lines.append(table(cells(shown, standing.thresholds)))
    lines += [f"{row.name}: {live.why(row)}" for row in standing.thresholds if row.due]
    lines += [live.new_model(model, standing.version) for model in models]
    return Answer(document, "\n".join(lines))


def _threshold(row: LiveThreshold) -> ThresholdDocument:
    estimate = row.estimate
    return ThresholdDocument(
        name=row.name, tier=row.tier, promised=row.promised, precision=estimate.precision, flagged=estimate.flagged,
        hallucinated=estimate.hits, labels=estimate.labels, positives=estimate.positives, since=estimate.since,
        until=estimate.until, by_recheck=estimate.recheck, state=row.judged.state.verdict if row.judged else None,
        drift=row.drift, models=[model.name for model in row.models], checked_at=row.checked_at,
        flags=sum(row.flags.values()), due=row.due, segment=row.segment, why=live.why(row),
    )  # fmt: skip


def _teller(args: Namespace, store: Store) -> Teller | None:
    url = (args.alerts or os.environ.get(WEBHOOK, "")).strip()
    if args.trace_url is not None:
        check_trace_url(args.trace_url)
    if not url:
        return None
    return Teller(store, check_url(url), now=now, trace_url=args.trace_url, on_problem=_print_problem)


def _annotating(args: Namespace, store: Store) -> list[Annotating]:
    """Open all systems before the first thread starts: a missing key is said at once."""
    annotators = {name: open_annotator(name) for name in dict.fromkeys(args.annotate)}
    return [
        Annotating(store, name, annotator, now=now, on_problem=_print_annotating_problem)
        for name, annotator in annotators.items()
    ]


def _print_annotating_problem(target: str, problem: str) -> None:
    text = f"verdicts could not be written to {target}, and are kept and tried again"
    print(f"touchstone: {text}: {problem}", file=sys.stderr, flush=True)


def _print_problem(problem: str) -> None:
    text = "the alerts could not be sent, and are kept and tried again"
    print(f"touchstone: {text}: {problem}", file=sys.stderr, flush=True)


def _repeat(look: Callable[[], Look], every: float) -> None:
    """Look until somebody stops it. A problem is printed once, and tried again."""
    problem: object = None
    while True:
        raise_if_stopped()
        try:
            latest = look()
            state = (latest.version, tuple(sorted(latest.problems)))
            if latest.decided or (latest.problems and state != problem):
                print(_line(latest), file=sys.stderr, flush=True)
            problem = state
        except StoreReplaced:  # it would not come right by itself
            raise
        except TouchstoneError as error:
            if str(error) != problem:
                print(f"touchstone: {error}; tried again every {every:g} s", file=sys.stderr, flush=True)
            problem = str(error)
        time.sleep(every)


def _touch(file: str | None) -> None:
    if file is not None:
        try:
            Path(file).touch()
        except OSError as error:
            raise BadInput(f"--alive {file!r} cannot be touched: {error.strerror}; name another file") from error


def _report(look: Look, alerts: SentAlerts | None, annotated: Mapping[str, AnnotatedSystem], undated: int) -> Answer:
    document = WatchDocument(
        version=look.version,
        decided=look.decided,
        tiers={tier: look.tiers[tier] for tier in ("page", "signal", "off")},
        unscored=look.unscored,
        scores={"made": look.computed, "reused": look.reused, "failed": look.failed},
        undecided=look.undecided,
        waiting=look.waiting,
        problems=look.problems,
        undated=undated,
    )
    lines = [_line(look)]
    if alerts:
        document = AlertingDocument(**vars(document), alerts=alerts)
        waiting = f", {alerts.waiting} kept for the next `watch`" if alerts.waiting else ""
        reason = f" ({alerts.problem})" if alerts.waiting and alerts.problem else ""
        lines.append(f"alerts: {alerts.sent} sent{waiting}{reason}")
    if annotated:
        document = AnnotatingDocument(**{"alerts": alerts, **vars(document)}, annotated=annotated)
        lines += [annotation_line(name, *astuple(system)) for name, system in annotated.items()]
    if undated:
        lines.append(f"{count(undated, 'undated trace')} in no window: --since all includes them")
    return Answer(document, "\n".join(lines), exit_code=1 if look.undecided else 0)


def _line(look: Look) -> str:
    """v7 decided 128 traces: 3 page, 9 signal; 12 scores made, 372 taken from the store."""
    flagged = ", ".join(f"{count(look.tiers[tier])} {tier}" for tier in ("page", "signal"))
    text = f"v{look.version} decided {count(look.decided, 'trace')}: {flagged}"
    if look.unscored:
        text += f"; {count(look.unscored)} could not be scored"
    text += f"; {count(look.computed)} scores made, {count(look.reused)} taken from the store"
    if look.failed:
        text += "; failed: " + ", ".join(f"{name} {count(n)}" for name, n in sorted(look.failed.items()))
    if look.waiting:
        text += f"; {count(look.waiting)} wait for scores that are to be imported"
    if look.undecided:
        reasons = "; ".join(f"{problem} ({n})" for problem, n in look.problems.most_common(MOST_PROBLEMS))
        text += f"; {count(look.undecided)} left for the next look" + (f": {reasons}" if reasons else "")
    return text

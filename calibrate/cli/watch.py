"""The verb that watches: scores and decides new traces as they come into the store."""

from __future__ import annotations

import math
import os
import sys
import time
from argparse import Namespace
from collections import Counter
from typing import TYPE_CHECKING, Any

from calibrate.cli import Answer
from calibrate.cli.common import now, said, say, store
from calibrate.cli.signals import as_interrupt
from calibrate.errors import BadInput, TouchstoneError
from calibrate.runtime import Alerts, load
from calibrate.runtime.alerts import check_trace_url
from calibrate.stats.sampling import designs
from calibrate.types import TraceFilter

if TYPE_CHECKING:
    from calibrate.workflow.watching.watch import Look, Watcher

WEBHOOK = "TOUCHSTONE_ALERTS_WEBHOOK"
LAST_ALERTS = 10.0  # seconds that alerts under way may take when watching ends


def run(args: Namespace) -> Answer:
    from calibrate.workflow.watching.watch import Watcher

    if not 0 < args.every < math.inf:
        raise BadInput(f"--every {args.every:g}: it is a number of seconds above 0")
    span = designs.parse_since(args.since)
    found = store(args)
    pinned = load(args.file) if args.file else None
    alerts = _alerts(args)

    def where() -> TraceFilter:
        since = designs.window_start(span, now())
        return TraceFilter(since=since, undated=since is None)

    watcher = Watcher(
        found,
        where=where,
        now=now,
        pinned=pinned,
        offer=alerts.offer if alerts else None,
        on_progress=lambda done, total: say(f"{done:,} of {total:,} traces"),
    )
    try:
        with as_interrupt():
            if not args.once:
                _go_on(watcher, args.every)
            look = watcher.look()
    finally:
        said()
        if alerts:
            alerts.close(LAST_ALERTS)
    undated = found.traces.undated(where()) if span is not None else 0
    return _answer(look, alerts, undated)


def _alerts(args: Namespace) -> Alerts | None:
    url = (args.alerts or os.environ.get(WEBHOOK, "")).strip()
    if not url:
        if args.trace_url is not None:
            check_trace_url(args.trace_url)
        return None
    return Alerts(url, tiers=("page", "signal"), trace_url=args.trace_url)


def _go_on(watcher: Watcher, every: float) -> None:
    """Looks until somebody stops it. What goes wrong is said once and tried again."""
    trouble: Any = None
    while True:
        try:
            look = watcher.look()
            line, now_wrong = _line(look), (look.version, tuple(sorted(look.problems)))
            if look.decided or (look.problems and now_wrong != trouble):
                said()
                print(line, file=sys.stderr, flush=True)
            trouble = now_wrong
        except TouchstoneError as error:
            if str(error) != trouble:
                print(f"touchstone: {error}; tried again every {every:g} s", file=sys.stderr, flush=True)
            trouble = str(error)
        time.sleep(every)


def _answer(look: Look, alerts: Alerts | None, undated: int) -> Answer:
    document: dict[str, Any] = {
        "version": look.version,
        "decided": look.decided,
        "tiers": {tier: look.tiers[tier] for tier in ("page", "signal", "off")},
        "scores": {"made": look.computed, "reused": look.reused, "failed": dict(look.failed)},
        "undecided": look.undecided,
        "problems": dict(look.problems),
    }
    lines = [_line(look)]
    if alerts:
        sent = alerts.counters
        document["alerts"] = {name: getattr(sent, name) for name in ("sent", "failed", "dropped", "suppressed")}
        lines.append(f"alerts: {sent.sent} sent, {sent.failed} failed, {sent.suppressed + sent.dropped} held back")
    if undated:
        lines.append(f"{undated:,} undated traces are in no window: --since all takes them in")
    return Answer({**document, "undated": undated}, "\n".join(lines), exit_code=1 if look.undecided else 0)


def _line(look: Look) -> str:
    """v7 decided 128 traces: 3 page, 9 signal; 12 scores made, 372 taken from the store."""
    flagged = ", ".join(f"{look.tiers[tier]:,} {tier}" for tier in ("page", "signal"))
    text = f"v{look.version} decided {look.decided:,} trace{'s' if look.decided != 1 else ''}: {flagged}"
    text += f"; {look.computed:,} scores made, {look.reused:,} taken from the store"
    failed: Counter[str] = look.failed
    if failed:
        text += "; failed: " + ", ".join(f"{name} {n:,}" for name, n in sorted(failed.items()))
    if look.undecided:
        why = "; ".join(f"{problem} ({n})" for problem, n in look.problems.most_common(3))
        text += f"; {look.undecided:,} left for the next look" + (f": {why}" if why else "")
    return text

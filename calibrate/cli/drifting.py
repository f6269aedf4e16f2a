"""The verbs that look after a release: whether its scores moved, and whether its precision still holds."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, store, table, user
from calibrate.errors import BadInput
from calibrate.report.sentences import drift as drift_sentences
from calibrate.report.sentences import recheck as recheck_sentences
from calibrate.stats.sampling.designs import parse_since, window_start
from calibrate.workflow.watching import drift as drifting
from calibrate.workflow.watching import recheck as rechecking
from calibrate.workflow.watching.drift import DetectorDrift, Report
from db.rechecks import Recheck


def drift(args: Namespace) -> Answer:
    at = now()
    since = window_start(parse_since(args.since), at) if args.since else None
    if args.since and since is None:
        raise BadInput("drift is about the traffic since a moment: give --since a date or a length of time, not all")
    report = drifting.drift(store(args), version=args.release, since=since, now=at, seed=args.seed)
    lines = [("detector", "model", "median", "flags", "scored", "n", ""), *(_row(line) for line in report.lines)]
    parts = [drift_sentences.verdict(report)]
    if report.lines:
        parts += [
            table(lines, right=(2, 3, 4, 5)),
            "\n".join(drift_sentences.line_verdict(line) for line in report.moved),
        ]
    parts += [f"next: {drift_sentences.next_step(report)}"]
    return Answer(_document(report), "\n\n".join(part for part in parts if part))


def recheck(args: Namespace) -> Answer:
    registry.get(args.detector)
    found, at = store(args), now()
    one = rechecking.newest(found, args.detector, version=args.release, model=args.model)
    did = None
    if one is None or rechecking.state(found, one, now=at).exhausted or (one.outcome and args.again):
        before = one
        one = rechecking.begin(
            found,
            args.detector,
            version=args.release,
            target=args.target,
            labels=rechecking.LABELS if args.labels is None else args.labels,
            model=args.model,
            seed=args.seed,
            by=user(),
            now=at,
        )
        did = "drawn" if before is None or before.id != one.id else None
    else:
        _as_it_was_begun(args, one)
        state = rechecking.state(found, one, now=at)
        if not state.done and not state.left:
            one, did = rechecking.more(found, one, labels=args.labels, now=at), "drawn more"
    state = rechecking.state(found, one, now=at)
    text = f"{recheck_sentences.verdict(state)}\nnext: {recheck_sentences.next_step(state)}"
    return Answer({**recheck_sentences.document(state), "did": did}, text)


def _as_it_was_begun(args: Namespace, one: Recheck) -> None:
    """Raises BadInput where other terms are asked for than those fixed before the first label."""
    held = rechecking.plan_of(one).target
    if args.target not in (None, held):
        stands = "is under way" if one.outcome is None else "has decided (--again begins a new one)"
        raise BadInput(
            f"a recheck of {one.detector} against {100 * held:.10g}% {stands}: leave out --target {args.target:g}"
        )
    if args.labels is not None and args.labels < 1:
        raise BadInput(f"--labels {args.labels} draws nothing: ask for at least 1")


def _row(line: DetectorDrift) -> tuple[str, ...]:
    shift = line.shift
    if shift is None:
        return line.detector, line.model, "", "", "", f"{line.scored:,}", line.state
    before, now = shift.before, shift.now
    return (
        line.detector,
        line.model,
        f"{_number(before.median)} → {_number(now.median)}",
        f"{_share(before.flag_rate)} → {_share(now.flag_rate)}",
        f"{_share(before.coverage)} → {_share(now.coverage)}",
        f"{before.traces:,} → {now.traces:,}",
        line.state,
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _document(report: Report) -> dict[str, Any]:
    return {
        "version": report.version,
        "models": list(report.models),
        "before": report.before.to_json(),
        "now": report.now.to_json(),
        "traces": report.traces,
        "unknown_models": [{"name": one.name, "traces": one.traces, "share": one.share} for one in report.unknown],
        "cap": report.cap,
        "seed": report.seed,
        "alpha": report.alpha,
        "verdict": drift_sentences.verdict(report),
        "next": drift_sentences.next_step(report),
        "lines": [_line(line) for line in report.lines],
    }


def _line(line: DetectorDrift) -> dict[str, Any]:
    names = ("detector", "model", "tier", "threshold", "flag_when", "state", "unseen", "traces", "scored")
    shown = {name: getattr(line, name) for name in names}
    return {
        **shown,
        "baseline": drift_sentences.baseline(line) or None,
        "shift": asdict(line.shift) if line.shift else None,
        "moved": asdict(line.moved) if line.moved else None,
        "prevalence": list(line.prevalence) if line.prevalence else None,
        "verdict": drift_sentences.line_verdict(line),
    }

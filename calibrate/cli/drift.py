"""The verbs that look after a release: whether its scores moved, and whether its precision still holds."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences import drift as drift_sentences
from calibrate.report.tables.column import cells
from calibrate.report.tables.drift import ON_TERMINAL
from calibrate.stats.sampling.designs import parse_since, window_start
from calibrate.workflow.watching import drift as drifting
from calibrate.workflow.watching.drift_report import DetectorDrift, Report


def run(args: Namespace) -> Answer:
    at = now()
    since = window_start(parse_since(args.since), at) if args.since else None
    if args.since and since is None:
        raise BadInput("drift is about the traffic since a moment: give --since a date or a length of time, not all")
    report = drifting.drift(open_store(args), version=args.release, since=since, now=at, seed=args.seed)
    parts = [drift_sentences.verdict(report)]
    if report.lines:
        parts += [
            table(cells(ON_TERMINAL, report.lines)),
            "\n".join(drift_sentences.line_verdict(line) for line in report.moved),
        ]
    parts += [f"next: {drift_sentences.next_step(report)}"]
    return Answer(_document(report), "\n\n".join(part for part in parts if part))


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

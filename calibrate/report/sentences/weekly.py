"""What the weekly run did and what it leaves to people, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.report.numbers import count
from calibrate.report.sentences import drift
from calibrate.workflow.week.weekly import NotRun, Scored, Weekly


def verdict(done: Weekly) -> str:
    """Say whether the release holds."""
    return drift.verdict(done.report) if done.report else "nothing is released yet"


def next_steps(done: Weekly) -> list[str]:
    """List what is for people to do, most pressing first."""
    return list(_next_steps(done))


def _next_steps(done: Weekly) -> Iterator[str]:
    if done.report and done.report.moved:
        yield drift.next_step(done.report)
    if done.upgraded:
        yield f"choose thresholds anew with `recalibrate`: {', '.join(done.upgraded)} changed since v{done.version}"
    if done.sample is None:
        yield "import what your app has logged: no dated trace came in the last 14 days"
    elif done.unlabelled:
        traces = count(done.sample.size, "trace")
        yield f"label {count(done.unlabelled)} of {traces} of {done.sample.name} (the Label page)"
    if done.version is None:
        yield "run detectors over the labels, `choose` thresholds and `release` them: nothing is released yet"


def scored(row: Scored) -> str:
    """Say what one detector did: "60 new traces scored, 2 could not be scored"."""
    if row.not_run:
        return f"not run: {not_run(row)}"
    missing = f", {count(row.missing)} could not be scored" if row.missing else ""
    return f"{count(row.scored, 'new trace')} scored{missing}"


def not_run(row: Scored) -> str | None:
    """Say why a detector was not run; None where it was."""
    if row.not_run == NotRun.ASKS_CHAT:
        return f"it asks a chat endpoint: `detect {row.detector} --sample NAME --budget USD` says what it may spend"
    if row.not_run == NotRun.SAMPLED:
        return f"production runs it on {row.detail} only"
    return row.detail if row.not_run else None

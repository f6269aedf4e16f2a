"""What the weekly run did and what it leaves to people, in sentences."""

from __future__ import annotations

from calibrate.detectors.shared.external import imported
from calibrate.report.numbers import count
from calibrate.report.sentences.watching import drift, week
from calibrate.workflow.week.weekly import NotRun, Scored, Weekly


def verdict(done: Weekly) -> str:
    """Say whether the release holds."""
    return drift.verdict(done.report) if done.report else "nothing is released yet"


def next_steps(done: Weekly) -> list[str]:
    """List what is for people to do, most pressing first: what the home page says."""
    return [week.line(done.state, step) for step in done.state.steps]


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
    if row.not_run == NotRun.IMPORTED:
        return imported(row.detector)
    if row.not_run == NotRun.SAMPLED:
        return f"production runs it on {row.detail} only"
    return row.detail if row.not_run else None

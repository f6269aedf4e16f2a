"""What the weekly run did and what it leaves to people, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from calibrate.report.numbers import count
from calibrate.report.sentences import drift, point_state
from calibrate.workflow.week.next_steps import Step
from calibrate.workflow.week.weekly import NotRun, Scored, Weekly


def verdict(done: Weekly) -> str:
    """Say whether the release holds."""
    return drift.verdict(done.report) if done.report else "nothing is released yet"


def next_steps(done: Weekly) -> list[str]:
    """List what is for people to do, most pressing first."""
    return [sentence for step in done.steps for sentence in _SENTENCES.get(step, _nothing)(done)]


def _nothing(done: Weekly) -> Iterator[str]:
    yield from ()


def _fix(done: Weekly) -> Iterator[str]:
    for judged in done.known_bad:
        reason = f" (released because: {judged.reason})" if judged.reason else ""
        yield f"take {judged.name} back, or choose another threshold: {point_state.in_short(judged.state)}{reason}"
    if done.report and done.report.moved:
        yield drift.next_step(done.report)
    if done.upgraded:
        yield f"choose thresholds anew with `recalibrate`: {', '.join(done.upgraded)} changed since v{done.version}"


def _settle(done: Weekly) -> Iterator[str]:
    yield f"settle {count(done.disputes, 'disputed label')} (the Disputes page, or `agreement adjudicate`)"


def _import(done: Weekly) -> Iterator[str]:
    yield "import what your app has logged: no dated trace came in the last 14 days"
    yield from _release(done) if done.version is None else ()


def _label(done: Weekly) -> Iterator[str]:
    assert done.sample is not None
    traces = count(done.sample.size, "trace")
    yield f"label {count(done.unlabelled)} of {traces} of {done.sample.name} (the Label page)"
    yield from _release(done) if done.version is None else ()


def _release(done: Weekly) -> Iterator[str]:
    if done.has_points:
        yield "`release` the saved thresholds: nothing is released yet"
    elif done.has_scores:
        yield "`choose` thresholds and `release` them: nothing is released yet"
    else:
        yield "run detectors over the labels, `choose` thresholds and `release` them: nothing is released yet"


_SENTENCES: dict[Step, Callable[[Weekly], Iterator[str]]] = {
    "sample": _import,
    "fix": _fix,
    "settle": _settle,
    "label": _label,
    "release": _release,
}


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

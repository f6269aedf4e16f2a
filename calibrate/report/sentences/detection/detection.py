"""What a run of detectors came to, in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from calibrate.report.names import title_of
from calibrate.report.numbers import count
from calibrate.sanitize import one_line
from calibrate.workflow.detection.detectors import LeftAlone
from calibrate.workflow.detection.outcomes import Failure

UNTIMED = "A time that is not known yet is known after a first run, on a sample for instance."


def failed(failure: Failure) -> str:
    """Write "Judge: yes or no failed on all 80 traces: the endpoint did not answer", or "HTTP cannot run: …"."""
    why = failure.why.rstrip(".") or "no reason given"
    if failure.unavailable:
        return f"{title_of(failure.detector)} cannot run: {why}."
    traces = "its only trace" if failure.tried == 1 else f"all {count(failure.tried, 'trace')}"
    if failure.failed < failure.tried:
        traces = f"{count(failure.failed)} of {count(failure.tried, 'trace')} and scored none"
    return f"{title_of(failure.detector)} failed on {traces}: {why}."


def retry(failures: Sequence[Failure], scope: Mapping[str, Any], params: Sequence[str] = ()) -> str:
    """Write the command that runs again only what failed. `params` are those of the first run, like variant=plain.

    A detector that could not run has no traces yet on which it failed.
    """
    again = "" if any(failure.unavailable for failure in failures) else " --again failed"
    return f"{_command([failure.detector for failure in failures], scope, params)}{again}"


def again(left: LeftAlone, attempted: int, scope: Mapping[str, Any], params: Sequence[str] = ()) -> str:
    """Say what a run of only what failed did again, what it left alone, and why."""
    name, parts = left.detector.name, []
    if attempted:
        parts.append(f"{count(attempted, 'trace')} that had failed {'was' if attempted == 1 else 'were'} done again")
    else:
        parts.append("no trace failed with the settings of now, so nothing was done again")
    if left.elsewhere:
        other = f"revision {one_line(left.revision, 120)}" if left.same_params and left.revision else "other settings"
        parts.append(f"the {count(left.elsewhere)} that failed did so with {other}, whose scores are kept apart")
    if left.waiting:
        have = "has no score" if left.waiting == 1 else "have no score"
        parts.append(f"{count(left.waiting, 'trace')} {have} yet: `{_command([name], scope, params)}` scores them")
    if left.abstained:
        parts.append(f"{count(left.abstained)} that it could not judge stay so: another run adds nothing to them")
    return f"{name}: {'; '.join(parts)}."


def _command(detectors: Sequence[str], scope: Mapping[str, Any], params: Sequence[str]) -> str:
    """Write the command that runs these detectors over these traces."""
    names = " ".join(map(shlex.quote, detectors))
    if "sample" in scope:
        where = f"--sample {shlex.quote(str(scope['sample']))}"
    else:
        where = "--labelled" if scope.get("labelled") else "--all"
    settings = "".join(f" --param {shlex.quote(param)}" for param in params)
    return f"detect {names} {where}{settings}"


def unavailable(names: Sequence[str], why: str) -> str:
    """Say which detectors were left out as they cannot run here, and the remedy."""
    return f"not run: {', '.join(names)}: {why}"


def stopped(run_id: int, done: int, total: int, verb: str = "detect") -> str:
    """Say what is in the store of a run that somebody ended, and which verb goes on with it."""
    return f"run {run_id}: {count(done)} of {count(total, 'score')} are in the store; `{verb}` goes on from there"


def given_back(run_id: int, done: int, total: int) -> str:
    """Say what becomes of the run of a worker that ends."""
    progress = f"{count(done)} of {count(total, 'score')} are in the store" if total else "nothing is scored yet"
    return f"run {run_id} waits for another worker: {progress}"


def ended(run_id: int, status: str, done: int, total: int, error: str | None = None) -> str:
    """Say what came of a run: "run 7 done: 100 of 100 scores"."""
    what = error or f"{count(done)} of {count(total, 'score')}"
    return f"run {run_id} {status}: {what}"

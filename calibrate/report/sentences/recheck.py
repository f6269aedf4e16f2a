"""A recheck in sentences, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

from calibrate.report.sentences.figures import interval, percent
from calibrate.sanitize import visible

if TYPE_CHECKING:
    from calibrate.workflow.watching.recheck import State


def said(at: State) -> str:
    """What is known, in sentences."""
    name, plan, n = at.recheck.detector, at.plan, at.hallucinated + at.clean
    target = f"{100 * plan.target:.10g}%"
    measured = at.standing.estimate
    known = "no flagged trace is labelled yet"
    if measured.value is not None:
        known = f"{at.hallucinated:,} of {n:,} flagged traces were hallucinated: {percent(measured.value)}"
        # The interval is of another test, in both directions: it may hold the target that this one has ruled out.
        known += "" if at.done else f", {interval(measured)} at whatever time one looks"
    unsure = f"; {at.unsure:,} unsure" if at.unsure else ""
    if at.decision == "holds":
        return f"{name} holds: its precision is above {target} ({known}{unsure})."
    if at.decision == "fell below":
        return f"{name} fell below {target} ({known}{unsure})."
    ahead = at.standing.more
    rest = at.left + at.pool - at.sample.size
    only = f", and only {rest:,} flagged traces are left" if ahead and ahead > rest else ""
    many = (
        f"about {ahead:,} more labels{only}"
        if ahead
        else "it is so near the target that 2,000 more labels may not tell"
    )
    return f"Not decided whether {name} {plan.limit} has a precision of {target}: {known}{unsure}; {many}."


def document(at: State) -> Mapping[str, Any]:
    """The state as JSON."""
    standing = at.standing
    return {
        "recheck": at.recheck.id,
        "detector": at.recheck.detector,
        "version": at.recheck.version,
        "model": at.plan.model,
        "sample": at.sample.name,
        "drawn": at.sample.size,
        "pool": at.pool,
        "target": at.plan.target,
        "alpha": at.plan.alpha,
        "decision": at.decision,
        "labels": at.counted,
        "hallucinated": at.hallucinated,
        "clean": at.clean,
        "unsure": at.unsure,
        "repeats": at.repeats,
        "waiting": at.waiting,
        "left": at.left,
        "precision": asdict(standing.estimate),
        "log_e_holds": standing.log_holds,
        "log_e_fell": standing.log_fell,
        "log_e_needed": standing.log_needed,
        "more": standing.more,
        "verdict": at.verdict,
        "next": at.next,
    }


def next_step(at: State) -> str:
    """What to do now."""
    name = at.recheck.detector
    model = f" --model {quote(visible(at.plan.model, 100))}" if at.plan.model is not None else ""
    if at.decision == "holds":
        return "nothing to do: the threshold stays"
    if at.decision == "fell below":
        return f"choose a stricter threshold, or recalibrate: `recalibrate`; until then put {name} into tier signal"
    if at.waiting:
        return (
            f"label the first trace of {at.sample.name} that has no label (unsure, if you cannot tell): "
            f"{at.waiting:,} labels wait behind it"
        )
    if at.left:
        return f"label the sample {at.sample.name} in its order (the Label page): {at.left:,} traces are left"
    if at.sample.size < at.pool:
        return f"`recheck {name}{model}` draws further traces"
    return exhausted(at)


def exhausted(at: State) -> str:
    """What to do when there is nothing left to draw."""
    return (
        f"all {at.pool:,} traces that were flagged when it began are labelled, and they do not decide it: "
        f"score newer traffic (`detect {at.recheck.detector} --all`), then `recheck {at.recheck.detector}` begins anew"
    )

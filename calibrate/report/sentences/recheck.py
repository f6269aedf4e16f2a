"""A recheck in sentences."""

from __future__ import annotations

from shlex import quote

from calibrate.report.numbers import count, exact_share, interval, share
from calibrate.sanitize import visible
from calibrate.workflow.watching.recheck import State


def verdict(at: State) -> str:
    """Say what is known of the precision."""
    name, plan = at.recheck.detector, at.plan
    target, evidence = exact_share(plan.target), _evidence(at)
    unsure = f"; {count(at.unsure)} unsure" if at.unsure else ""
    if at.decision == "holds":
        return f"{name} holds: its precision is above {target} ({evidence}{unsure})."
    if at.decision == "fell below":
        return f"{name} fell below {target} ({evidence}{unsure})."
    ahead = at.standing.more
    rest = at.left + at.pool - at.sample.size
    only = f", and only {_are(rest, 'flagged trace')} left" if ahead and ahead > rest else ""
    many = (
        f"about {count(ahead, 'more label')}{only}"
        if ahead
        else "it is so near the target that 2,000 more labels may not tell"
    )
    return f"Not decided whether {name} {plan.limit} has a precision of {target}: {evidence}{unsure}; {many}."


def _evidence(at: State) -> str:
    estimate = at.standing.estimate
    if estimate.value is None:
        return "no flagged trace is labelled yet"
    flagged = count(at.hallucinated + at.clean, "flagged trace")
    precision = f"{count(at.hallucinated)} of {flagged} were hallucinated: {share(estimate.value)}"
    # The interval is of another test, in both directions: it may hold the target that this one has ruled out.
    return precision if at.done else f"{precision}, {interval(estimate.low, estimate.high)} at whatever time one looks"


def next_step(at: State) -> str:
    """Say what to do now."""
    name = at.recheck.detector
    model = f" --model {quote(visible(at.plan.model, 100))}" if at.plan.model is not None else ""
    if at.decision == "holds":
        return "nothing to do: the threshold stays"
    if at.decision == "fell below":
        return f"choose a stricter threshold, or recalibrate: `recalibrate`; until then put {name} into tier signal"
    if at.waiting:
        return (
            f"label the first trace of {at.sample.name} that has no label (unsure, if you cannot tell): "
            f"{count(at.waiting, 'label')} {'waits' if at.waiting == 1 else 'wait'} behind it"
        )
    if at.left:
        return f"label the sample {at.sample.name} in its order (the Label page): {_are(at.left, 'trace')} left"
    if at.sample.size < at.pool:
        return f"`recheck {name}{model}` draws further traces"
    return (
        f"all {count(at.pool, 'trace')} that were flagged when it began are labelled, and they do not decide it: "
        f"score newer traffic (`detect {at.recheck.detector} --all`), then `recheck {at.recheck.detector}` begins anew"
    )


def _are(n: int, noun: str) -> str:
    return f"{count(n, noun)} {'is' if n == 1 else 'are'}"

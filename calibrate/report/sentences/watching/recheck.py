"""A recheck in sentences."""

from __future__ import annotations

from shlex import quote

from calibrate import registry
from calibrate.report.names import title_of
from calibrate.report.numbers import count, day, exact_share, interval, share
from calibrate.report.numbers import period as days
from calibrate.sanitize import one_line, visible
from calibrate.types import TraceFilter
from calibrate.workflow.watching.recheck import State
from calibrate.workflow.watching.recheck_plan import INSTANT, Plan, Traffic

ENOUGH = 120
"""Labels that a recheck is likely to need where the precision is a tenth above its target."""


def verdict(at: State) -> str:
    """Say what is known of the precision, and of which traffic."""
    name, plan = title_of(at.recheck.detector), at.plan
    target, evidence = exact_share(plan.target), _evidence(at)
    part = f"{one_line(plan.part, 80)} " if plan.part is not None else ""
    where = f"in the {part}traffic of {period(plan)}"
    unsure = f"; {count(at.unsure)} unsure" if at.unsure else ""
    if at.decision == "holds":
        return f"{name} holds {where}: its precision there is above {target} ({evidence}{unsure})."
    if at.decision == "fell below":
        return f"{name} fell below {target} {where} ({evidence}{unsure}){_by_source(at)}."
    ahead = at.standing.more
    rest = at.left + at.pool - at.sample.size
    only = f", and only {_are(rest, 'flagged trace')} left" if ahead and ahead > rest else ""
    many = (
        f"about {count(ahead, 'more label')}{only}"
        if ahead
        else "it is so near the target that 2,000 more labels may not tell"
    )
    return (
        f"Not decided whether {name} {plan.limit} has a precision of {target} {where}: {evidence}{unsure}; {many}"
        f"{_by_source(at)}."
    )


def period(plan: Plan) -> str:
    """Write the period of a recheck, both days included: "8 to 14 Nov 2026"."""
    return _period(plan.where)


def _period(where: TraceFilter) -> str:
    if where.since is None or where.until is None:
        return "all days" if where.since is None else f"{day(where.since)} and later"
    return days(where.since, where.until - INSTANT)


def traffic(of: Traffic) -> str:
    """Say what a recheck would draw from: "18 flagged traces to draw from in the traffic of 8 to 14 Nov 2026, …"."""
    return (
        f"{count(of.flagged, 'flagged trace')} to draw from in the traffic of {_period(of.where)}, "
        f"{count(of.since_release)} since the release"
    )


def _evidence(at: State) -> str:
    estimate = at.standing.estimate
    if estimate.value is None:
        return "no flagged trace is labelled yet"
    flagged = count(at.hallucinated + at.clean, "flagged trace")
    if at.repeats:
        flagged += f" from {count(at.standing.sources, 'source')}"
    precision = f"{count(at.hallucinated)} of {flagged} were hallucinated: {share(estimate.value)}"
    # The interval is of another test, in both directions: it may hold the target that this one has ruled out.
    return precision if at.done else f"{precision}, {interval(estimate.low, estimate.high)} at whatever time one looks"


def _by_source(at: State) -> str:
    """What a few busy sources do, where counting each source once would say otherwise."""
    hits, sources = at.standing.hallucinated_sources, at.standing.sources
    if not at.repeats or not sources:
        return ""
    once = f"with every source counted once, {count(hits)} of {count(sources)} were hallucinated"
    if at.decision == "fell below":
        return f"; {once}: look at the sources that are flagged most" if hits / sources > at.plan.target else ""
    if at.standing.log_rows >= at.standing.log_needed > at.standing.log_sources:
        return f"; counted by trace it holds, but {once}, and it must hold by either count"
    return ""


def next_step(at: State) -> str:
    """Say what to do now."""
    name = at.recheck.detector
    narrowed = (("segment", at.plan.segment), ("model", at.plan.model))
    model = "".join(f" --{name} {quote(visible(value, 100))}" for name, value in narrowed if value is not None)
    if at.decision == "holds":
        return "nothing to do: the threshold stays"
    if at.decision == "fell below":
        stricter = "choose a stricter threshold, or recalibrate: `recalibrate`"
        return f"{stricter}; until then put {title_of(name)} into tier signal"
    if at.waiting:
        return (
            f"label the first trace of {at.sample.name} that has no label (unsure, if you cannot tell): "
            f"{count(at.waiting, 'label')} {'waits' if at.waiting == 1 else 'wait'} behind it"
        )
    if at.left:
        return f"label the sample {at.sample.name} in its order (the Label page): {_are(at.left, 'trace')} left"
    if at.sample.size < at.pool:
        return f"`recheck {name}{model}` draws further traces"
    return f"all {count(at.pool, 'flagged trace')} of {period(at.plan)} are labelled, and they do not decide it: " + (
        f"`recheck {name}{model} --since DATE` takes a longer period ({count(at.plan.since_release or 0)} were flagged "
        "since the release), or score newer traffic"
        if (at.plan.since_release or 0) > at.pool
        else f"score newer traffic (`{registry.how_to_score(name)}`), then `recheck {name}{model}` begins anew"
    )


def few(at: State) -> str | None:
    """Say how many flagged traces the period has where that is little; None where there are enough."""
    if at.done or at.pool >= ENOUGH or at.plan.since_release is None:
        return None
    flagged = f"only {count(at.pool, 'flagged trace')} in the traffic of {period(at.plan)}"
    if at.plan.since_release <= at.pool:
        return f"{flagged}: few to decide by"
    return f"{flagged}, few to decide by; a longer period has more, {count(at.plan.since_release)} since the release"


def _are(n: int, noun: str) -> str:
    return f"{count(n, noun)} {'is' if n == 1 else 'are'}"

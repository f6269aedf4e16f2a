"""What is known against a threshold, why, and what to do instead, in sentences."""

from __future__ import annotations

from calibrate.report.names import title_of
from calibrate.report.numbers import about, count, estimate, exact_share, interval, share, share_beside
from calibrate.report.sentences.tuning.figures import capitalised, chance_words
from calibrate.sanitize import one_line
from calibrate.types import OperatingPoint, PointState, PointVerdict, StateReason
from calibrate.workflow.tuning.better_steps import BetterKind, BetterStep, count_more_labels

HEADLINES = {
    PointVerdict.HOLDS: "Holds",
    PointVerdict.NOT_SHOWN: "Not shown yet",
    PointVerdict.DO_NOT_RELEASE: "Do not release this",
}


def headline(state: PointState) -> str:
    """Say the state in two or three words: "Do not release this"."""
    return HEADLINES[state.verdict]


def sentence(state: PointState, *, unmet: str | None = None) -> str:
    """Say why, with the figures. `unmet`: why no threshold meets the policy, where that is the reason."""
    if state.why == StateReason.UNMET and unmet:
        return f"{capitalised(unmet)}."
    return _SENTENCES[state.why](state) if state.why else _holds(state)


def why_with_labels(point: OperatingPoint, state: PointState, *, unmet: str | None = None) -> str:
    """Say why; of what is not shown yet also about how many more labels would tell."""
    more = count_more_labels(point, state) if state.verdict == PointVerdict.NOT_SHOWN else None
    tell = [] if more is None else [better(BetterStep(BetterKind.MORE_LABELS, labels=more))]
    return " ".join([sentence(state, unmet=unmet), *tell])


def in_short(state: PointState) -> str:
    """Say the state and why in one line: "Do not release this: …"."""
    return f"{headline(state)}: {_lowered(sentence(state))}"


def against(name: str, state: PointState, reason: str) -> str:
    """Say that something is released though known to be bad, and for what reason."""
    given = f" Released all the same: {reason}" if reason else " No reason was given."
    return f"{title_of(name)}: {_lowered(headline(state))}. {sentence(state)}{given}"


def better(step: BetterStep, *, title: str | None = None) -> str:
    """Say what to do instead: "About 240 more labels would tell.". `title` is the other detector's name for people."""
    if step.kind == BetterKind.SETTLE:
        return f"Settle the {count(step.labels or 0, 'dispute')} among its flags."
    if step.kind == BetterKind.LOWER_TARGET:
        return f"A precision of {exact_share(step.target or 0.0)} would hold, by a lower bound on these labels."
    if step.kind == BetterKind.OTHER_DETECTOR and step.other:
        recall = step.other.recall
        recalled = estimate(recall.value, recall.low, recall.high)
        return f"{title or step.other.detector} does better by the same policy: it finds {recalled} of hallucinations."
    if step.kind == BetterKind.MORE_LABELS:
        return f"About {about(step.labels or 0)} more labels would tell."
    return "Certify it on fresh labels."


def command(step: BetterStep, detector: str, policy: str) -> str | None:
    """Write the command that takes a step; None where it is done on a page."""
    if step.kind == BetterKind.LOWER_TARGET:
        return f'choose {detector} --policy "precision>={step.target}" --strength bounded --save'
    if step.kind == BetterKind.OTHER_DETECTOR and step.other:
        return f'choose {step.other.detector} --policy "{policy}" --save'
    return f"certify {detector}" if step.kind == BetterKind.CERTIFY else None


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _holds(state: PointState) -> str:
    if not state.flagged:
        return "It finds more than its best detector alone, beyond the interval of the difference."
    if state.target is None:
        return f"It flags hallucinated traces more often than clean ones ({_flagged(state)})."
    if state.chance is None:
        return f"A lower bound reaches its target{_of(state)}."
    return f"{_chosen_so(state)}."


def _fell(state: PointState) -> str:
    part = f" of {one_line(state.part, 80)}" if state.part else ""
    return f"A recheck{part} found it below its target{_of(state)}: {_flagged(state)}."


def _overturned(state: PointState) -> str:
    part = f" of {one_line(state.part, 80)}" if state.part else ""
    now = _flagged(state, "are hallucinated now")
    return f"Its certificate{part} no longer holds, as labels have changed since: {now}."


def _unstated(state: PointState) -> str:
    return (
        f"Its labels were of every trace then; {count(state.unlabelled)} of {count(state.traces)} have none now, and "
        "nobody has said how the labelled ones were chosen: choose it again on a sample of the traffic."
    )


def _not_of_traffic(state: PointState) -> str:
    return "By what is known now of how its labels were chosen, they do not describe the traffic: choose it on others."


def _unmet(state: PointState) -> str:
    return "No threshold meets the policy; this is the nearest."


def _finds_nothing(state: PointState) -> str:
    return "It finds none of the labelled hallucinations."


def _below(state: PointState) -> str:
    value, target = state.figure.value or 0.0, state.target or 0.0
    put = f"{share_beside(value, target)} ({_interval(state)})" if state.figure.low is not None else share(value)
    return f"Its labels put it at {put}, below {_target(state)}: {_flagged(state)}."


def _mostly_below(state: PointState) -> str:
    if state.moved_from:
        chosen_so = _lowered(_chosen_so(state))
        return f"Moved by hand, it is not shown to reach {_target(state)}, and {chosen_so}: {_counted(state)}."
    return f"{_chosen_so(state)}: {_counted(state)}."


def _few(state: PointState) -> str:
    if not state.flagged:
        return "It flags none of the labels: nothing is known of its precision."
    flagged = count(state.flagged, "label is", "labels are")
    return f"Only {flagged} flagged, {count(state.hits)} of them hallucinated{_reach(state)}."


def _wide(state: PointState) -> str:
    counted = f": {_flagged(state)}" if state.flagged else ""
    return f"Its precision may be nearly anything, {_interval(state)}{counted}."


def _no_better(state: PointState) -> str:
    return f"It flags clean traces at least as often as hallucinated ones: {_flagged(state)}."


def _worse_than_single(state: PointState) -> str:
    return "It finds less than its best detector alone, beyond the interval of the difference."


def _no_gain(state: PointState) -> str:
    return "It is not shown to find more than its best detector alone."


def _disputed(state: PointState) -> str:
    disputed = count(state.disputed, "disputed label is", "disputed labels are")
    were = "were it clean" if state.disputed == 1 else "were they clean"
    return f"{disputed} flagged: {were}, it would miss its target{_of(state)} ({_flagged(state)} without)."


def _unproven(state: PointState) -> str:
    if state.chance is not None:
        return f"{_chosen_so(state)}: {_counted(state)}."
    if state.target is not None:
        return f"Its labels put it at {_figure(state)}, and do not prove {_target(state)}."
    return f"It promises no precision, and none is proven: {_counted(state)}."


_SENTENCES = {
    StateReason.RECHECK_FELL: _fell,
    StateReason.OVERTURNED: _overturned,
    StateReason.UNSTATED: _unstated,
    StateReason.NOT_OF_TRAFFIC: _not_of_traffic,
    StateReason.UNMET: _unmet,
    StateReason.FINDS_NOTHING: _finds_nothing,
    StateReason.BELOW_TARGET: _below,
    StateReason.MOSTLY_BELOW: _mostly_below,
    StateReason.FEW_FLAGGED: _few,
    StateReason.WIDE: _wide,
    StateReason.NO_BETTER: _no_better,
    StateReason.WORSE_THAN_SINGLE: _worse_than_single,
    StateReason.NO_GAIN: _no_gain,
    StateReason.DISPUTED: _disputed,
    StateReason.UNPROVEN: _unproven,
}


def _flagged(state: PointState, were: str = "were hallucinated") -> str:
    return f"{count(state.hits)} of {count(state.flagged, 'flagged label')} {were}"


def _counted(state: PointState) -> str:
    return f"{_flagged(state)}{_reach(state)}"


def _chosen_so(state: PointState) -> str:
    target = exact_share(state.target or 0.0)
    often = chance_words(state.chance or 0.0)
    return f"Thresholds chosen so on labels like these are truly below {target} in {often} of cases"


def _of(state: PointState) -> str:
    return "" if state.target is None else f" of {exact_share(state.target)}"


def _target(state: PointState) -> str:
    """ "its target of 70%", "the 70% last asked for"."""
    return f"the {exact_share(state.target or 0.0)} last asked for" if state.moved_from else f"its target{_of(state)}"


def _figure(state: PointState) -> str:
    figure = state.figure
    return estimate(figure.value, figure.low, figure.high) if figure.value is not None else share(figure.value)


def _reach(state: PointState) -> str:
    return f" (95% interval {_interval(state)})" if state.figure.low is not None else ""


def _interval(state: PointState) -> str:
    return interval(state.figure.low, state.figure.high)

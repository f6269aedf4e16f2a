"""How far the certification of a threshold is and what came of it, in sentences."""

from __future__ import annotations

from calibrate.orientation import SIGNS
from calibrate.report.names import title_of
from calibrate.report.numbers import count, estimate, exact_share, number, share
from calibrate.sanitize import one_line
from calibrate.stats.certification.certificates import NotCertifiable, Offer, Plan, Shortfall, ShortfallReason, Step
from calibrate.stats.certification.forecast import POWER, SIZES
from calibrate.stats.intervals.exact_tests import left_after
from calibrate.thresholds.segments import name_segment
from calibrate.types import FlagWhen, Guarantee, Part, Segments
from calibrate.workflow.certification.attempts import CertificationStatus, Outcome, Overturned


def status(at: CertificationStatus) -> str:
    """Say how far an attempt is, or what came of it, and whether that still holds."""
    if at.overturned:
        text = overturned(at.overturned)
        return f"{text[:1].upper()}{text[1:]}."
    return _progress(at) if at.outcome is None else _outcome(at.plan, at.outcome, at.terms.part)


def overturned(change: Overturned) -> str:
    """Say that the labels behind a certificate have changed since."""
    sure = change.guarantee
    unsure = f" and {count(change.unsure)} of the rest are unsure or disputed" if change.unsure else ""
    return (
        f"labels of {title_of(change.detector)}{in_part(change.part)} have changed since it was certified: "
        f"{count(sure.hallucinated)} of "
        f"{count(sure.labels)} were hallucinated, {count(change.hallucinated)} are now{unsure}. The certificate no "
        "longer holds: certify it anew"
    )


def _progress(at: CertificationStatus) -> str:
    plan = at.plan
    promise = (
        f"Attempt {plan.attempt}: label {count(plan.labels, 'test trace')} of those flagged at "
        f"{limit(plan, plan.deepest)}{in_part(at.terms.part)}; chance to certify a precision of "
        f"{exact_share(plan.target)}: "
        f"about {share(plan.chance)}{_likely_recall(plan)}."
    )
    if at.fresh is None:
        hint = " That is little: label more of the sample first, or allow more test labels."
        return f"{promise}{hint if plan.chance < 0.5 else ''}{_unsure(plan)} {_error(plan)}"
    drawn = f" Only {count(at.fresh.size)} were there to draw." if at.fresh.size < plan.labels else ""
    return f"{promise}{drawn} {count(at.labelled)} of {count(at.fresh.size)} are labelled."


def offered(offer: Offer) -> str:
    """What a number of test labels is likely to buy."""
    return (
        f"{count(offer.labels, 'test label')}: chance about {share(offer.chance)}, {share(offer.chance_unsure)} where "
        f"a tenth of the answers are unsure; recall then about {share(offer.recall)}"
    )


def _likely_recall(plan: Plan) -> str:
    return "" if plan.recall is None else f", then with a recall of about {share(plan.recall)} of what it can score"


def _unsure(plan: Plan) -> str:
    if plan.chance_unsure is None:
        return ""
    return (
        " Unsure and disputed answers count as not hallucinated: with a tenth of them unsure, the chance is about "
        f"{share(plan.chance_unsure)}."
    )


def _outcome(plan: Plan, outcome: Outcome, part: Part | None) -> str:
    counted = [
        f"{count(outcome.unsure)} unsure or disputed counted as not hallucinated" if outcome.unsure else "",
        f"{count(outcome.repeats)} that share sources with another were left out of the test by sources"
        if outcome.repeats
        else "",
    ]
    notes = "; ".join(note for note in counted if note)
    notes = f" Of the labels, {notes}." if notes else ""
    sure = outcome.guarantee
    if sure is None or outcome.cut is None:
        return f"Not certified{in_part(part)}: {why(plan, outcome)}.{notes} {_error(plan)}"
    return (
        f"Certified: of what is flagged at {limit(plan, outcome.cut)}{in_part(part)}, at least "
        f"{exact_share(sure.target)} is "
        f"hallucinated ({count(sure.hallucinated)} of {count(sure.labels)} test labels were), {tested(sure)}.{notes} "
        f"{_error(plan)}"
    )


def in_part(part: Part | None) -> str:
    """Say that a statement is of one segment: " in the operation qa traffic alone"; "" for all traffic."""
    return f" in the {one_line(name_segment(part.by, part.name), 80)} traffic alone" if part else ""


def certified_segments(segments: Segments | None, flag_when: FlagWhen) -> list[str]:
    """Say what is certified of the segments, a sentence for each that has a certificate."""
    lines = []
    for name, own in sorted(segments.thresholds.items() if segments else ()):
        sure = own.guarantee
        if segments is not None and sure is not None and sure.strength == "certified":
            lines.append(
                f"Certified{in_part(Part(segments.by, name))}: at least {exact_share(sure.target)} of what is flagged "
                f"at {SIGNS[flag_when]} {number(own.threshold)} there is hallucinated ({count(sure.hallucinated)} of "
                f"{count(sure.labels)} test labels were); at most {exact_share(round(1 - sure.confidence, 9))} of such "
                "certificates are wrong"
            )
    return lines


def tested(sure: Guarantee) -> str:
    """What the test behind a certificate promises."""
    wrong = exact_share(round(1 - sure.confidence, 9))
    return f"tested so that at most {wrong} of such certificates are wrong, for the traffic drawn from"


def _error(plan: Plan) -> str:
    """What this attempt may err in, and what is left for others."""
    return (
        f"Attempt {plan.attempt} at {exact_share(plan.target)} on this traffic may err in {exact_share(plan.level)}, "
        f"all of them together in {exact_share(plan.alpha)}: {exact_share(left_after(plan.attempt, plan.alpha))} is "
        "left for others."
    )


def why(plan: Plan, outcome: Outcome) -> str | None:
    """Say why an attempt certified nothing; None where it did."""
    if outcome.why is None or isinstance(outcome.why, str):
        return outcome.why
    return _shortfall(outcome.why, outcome.walk, plan.target, outcome.needed)


def no_plan(result: NotCertifiable) -> str:
    """Say why no plan is likely to certify anything."""
    return _shortfall(result.why, result.walk, result.target, result.needed)


def _shortfall(why: Shortfall, walk: tuple[Step, ...], target: float, needed: int | None) -> str:
    failed = "the labels so far give no cut worth testing"
    if walk:
        step = walk[0]
        failed = (
            f"of the {count(step.labels, 'label')} flagged at {number(step.cut)}, {count(step.hallucinated)} "
            f"are hallucinated{_by_source(step)}: too few to be sure of a precision of {exact_share(target)}"
        )
    elif why.chance is not None:
        failed = f"so many test labels would certify with a chance of about {share(why.chance)}, too little to ask for"
    if why.reason == ShortfallReason.FAILED:
        return failed
    if why.reason == ShortfallReason.MORE_LABELS:
        return f"{failed}; about {count(needed or 0, 'more flagged label')} would do, with a chance of {share(POWER)}"
    if why.reason == ShortfallReason.OUT_OF_REACH and why.best is not None:
        best = estimate(why.best.value, why.best.low, why.best.high)
        return (
            f"{failed}; not reachable with this detector: its best cut has a precision of about {best}; lower the "
            "target or take another"
        )
    if why.reason == ShortfallReason.NO_TRAFFIC:
        return (
            f"{failed}; about {count(why.labels or 0, 'more flagged label')} would do, and the "
            f"{count(why.fresh or 0, 'trace')} left to draw from do not give so many: import and score new traffic, "
            "then certify again"
        )
    return (
        f"{failed}; {count(SIZES[-1], 'more flagged label')} would not do: label another sample of the whole traffic "
        "to know the scores better, lower the target, or take another detector"
    )


def _by_source(step: Step) -> str:
    """Where labels share sources, what the labels say of which one a source counts."""
    if step.sources is None or step.sources == step.labels:
        return ""
    return f" ({count(step.first_hallucinated or 0)} of {count(step.sources)} with one label a source)"


def limit(plan: Plan, cut: float) -> str:
    """Write where a cut flags: "≥ 0.62"."""
    return f"{SIGNS[plan.flag_when]} {number(cut)}"

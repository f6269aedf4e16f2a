"""What is known of an ensemble, in sentences that anybody can check against the labels."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.report.sentences.figures import interval, percent
from calibrate.stats.ensembles.joint import Joint
from calibrate.types import Interval

BETTER, WORSE, SAME = "better", "worse", "same"


def against(difference: Interval) -> str:
    """Whether a difference in recall is beyond its interval: better, worse or same (which is: not shown)."""
    if difference.low is not None and difference.low > 0:
        return BETTER
    return WORSE if difference.high is not None and difference.high < 0 else SAME


def sentence(
    share: float, recall: Interval, best: str, best_recall: Interval, difference: Interval, *, positives: int
) -> str:
    """What it flags and finds, and whether it beats the best single detector. `share` of the traffic, 0 to 1.

    "Flags 5.0% of traffic and finds about 34% (22–48) of hallucinations (62 labelled); the single detector ..."
    """
    if not share:
        return "Flags nothing: its most suspicious score is shared by more traffic than the budget allows."
    if recall.value is None:
        return f"Flags {percent(share)} of traffic. How many hallucinations it finds is unknown: none is labelled."
    found = (
        f"Flags {percent(share)} of traffic and finds about {_reach(recall)} of hallucinations ({positives:,} labelled)"
    )
    single = (
        f"the single detector that ranks best in each fold (AUROC), {best} on all labels, finds {_reach(best_recall)}"
    )
    return f"{found}; {single}. {_verdict(difference)}"


def joint_sentence(found: Joint, detectors: Sequence[str], budget: float) -> str:
    """How many clean traces the detectors flag together."""
    if found.measured.value is None:
        return "How often they flag clean traces together is unknown: none is labelled clean."
    who = "at least one" if found.k == 1 else f"at least {found.k}"
    return (
        f"Were {names(detectors)} each to flag {percent(budget)} of traffic, {who} would flag "
        f"{percent(found.measured.value)} ({interval(found.measured)}) of clean traces."
    )


def points(share: float, *, digits: int = 0) -> str:
    """A difference of shares, signed, in points: +4, −6, 0."""
    whole = round(100 * share, digits)
    return f"{'+' if whole > 0 else '−' if whole < 0 else ''}{abs(whole):.{digits}f}"


def difference_words(difference: Interval) -> str:
    """+4 points (−6 to +13)."""
    if difference.value is None:
        return "unknown"
    reach = ""
    if difference.low is not None and difference.high is not None:
        nearest = min(abs(difference.low), abs(difference.high))
        digits = 0
        while against(difference) != SAME and digits < 3 and not round(100 * nearest, digits):
            digits += 1  # an interval beyond 0 must not look as if it held it
        reach = f" ({points(difference.low, digits=digits)} to {points(difference.high, digits=digits)})"
    one = "" if abs(round(100 * difference.value)) == 1 else "s"
    return f"{points(difference.value)} point{one}{reach}"


def names(given: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(given[:-1]), given[-1]] if len(given) > 1 else given)


def _verdict(difference: Interval) -> str:
    words = difference_words(difference)
    if difference.value is None or difference.low is None:
        return "The labels are too few to tell the two apart."
    if against(difference) == BETTER:
        return f"The difference, {words}, is beyond its interval: the ensemble finds more."
    if against(difference) == WORSE:
        return f"The difference, {words}, is beyond its interval: the ensemble finds less. Use the single detector."
    return f"The difference, {words}, is within its interval: the ensemble is not shown to be better."


def _reach(figure: Interval) -> str:
    return "an unknown share" if figure.value is None else f"{percent(figure.value)} ({interval(figure, unit='')})"

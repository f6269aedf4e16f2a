"""What is known about a chosen threshold, in sentences. Every percentage has its n near it."""

from __future__ import annotations

from calibrate.stats.choosing.policy import Policy
from calibrate.types import Interval, OperatingPoint

# Below about this many hallucinated labels one label more or less moves every figure.
FEW_POSITIVES = 10
# What simulation found, where no chance was worked out for the labels at hand: 29 to 54% over all its cells.
FREQUENCY = "about as often as not"


def sentence(
    point: OperatingPoint, flags_per_day: float | None = None, *, chance: float | None = None, drawn: str = "afresh"
) -> str:
    """What the point does and how well that is known, by its strength.

    `flags_per_day` is what it would flag a day, if that is known. `chance` is `chance_below` of a measured precision
    policy. `drawn` says when the labels of a certificate were drawn, like "this week".
    "Flags 3.1% of traffic, about 260 a day. Of what it flags, 71% was hallucinated (95% interval 58–81%, 84 labels)..."
    """
    # A policy that no threshold meets is never passed over in silence.
    why = f"{point.why[0].upper()}{point.why[1:]}." if point.why else ""
    parts = [why, _flags(point, flags_per_day), _precision(point, drawn), _recall(point), _standing(point, chance)]
    return " ".join(part for part in parts if part)


def policy_in_words(policy: Policy) -> str:
    """A policy as people say it: "precision at least 70%"."""
    value, miss = policy.value or 0.0, policy.miss or 0.0
    said = {
        "precision": f"precision at least {percent(value)}",
        "recall": f"recall at least {percent(value)}",
        "f-beta": f"highest F{value:g}",
        "cost": f"cheapest at {value:g} a false alarm and {miss:g} a miss",
        "alerts": f"at most {value:g} flags a day",
        "manual": "set by hand",
    }
    return said.get(policy.kind, policy.kind)


def cautions(point: OperatingPoint) -> list[str]:
    """What a reader of the figures must know before relying on them; empty when there is nothing to say."""
    found = []
    if point.positives < FEW_POSITIVES:
        found.append(
            f"Only {_count(point.positives, 'hallucinated label')}: one more or less moves every measured figure. "
            f"Label until there are at least {FEW_POSITIVES}."
        )
    unscored = point.n - _scored(point)
    if unscored:
        found.append(
            f"{unscored} of {_count(point.n, 'labelled trace')} could not be scored; they are never flagged, "
            "and hallucinations among them count as missed."
        )
    return found


def percent(share: float) -> str:
    """A share as percent: one digit after the point below 10%, none above; never 0% or 100% of what is not all."""
    value = 100 * share
    if value < 0.05:
        return "0%" if value <= 0 else "under 0.1%"
    if value < 9.95:
        return f"{value:.1f}%"
    # Sums of weights fall short of the whole by a rounding.
    return "over 99%" if 99.5 <= value < 100 - 1e-9 else f"{value:.0f}%"


def interval(figure: Interval, unit: str = "%") -> str:
    """The bounds as whole percents, `58–81%`; where both are below one, to a tenth: `0.2–0.6%`."""
    if figure.low is None or figure.high is None:
        return "not known"
    low, high = 100 * figure.low, 100 * figure.high
    if not 0 < high < 0.95:
        return f"{low:.0f}–{high:.0f}{unit}"
    least = f"{low:.1f}" if low >= 0.05 else "0"
    return f"{least}–{max(high, 0.1):.1f}{unit}"


def _flags(point: OperatingPoint, flags_per_day: float | None) -> str:
    if point.flag_rate.value is None:
        return "How much it flags is unknown: there are no labels."
    a_day = "" if flags_per_day is None else f", {_per_day(flags_per_day)}"
    if point.flag_rate.value == 0:
        most = "" if point.flag_rate.high is None else f" (95% interval {interval(point.flag_rate)} of traffic)"
        return f"Flags 0 of {_count(point.n, 'labelled trace')}{most}{a_day if flags_per_day else ''}."
    return f"Flags {percent(point.flag_rate.value)} of traffic{a_day}."


def _precision(point: OperatingPoint, drawn: str) -> str:
    if point.guarantee:
        return f"Of what it flags, at least {_exact(point.guarantee.target)} is hallucinated ({_known(point, drawn)})."
    if point.precision.value is None:
        # Without a label at all that much has been said.
        return f"Its precision is unknown: none of the {_count(point.n, 'label')} is flagged." if point.n else ""
    flagged = point.true_positives + point.false_positives
    return (
        f"Of what it flags, {percent(point.precision.value)} was hallucinated "
        f"(95% interval {interval(point.precision)}, {_count(flagged, 'label')} flagged)."
    )


def _known(point: OperatingPoint, drawn: str) -> str:
    """What the guarantee rests on."""
    found = point.guarantee
    assert found is not None
    sure = _exact(found.confidence)
    if found.strength == "certified":
        return f"{sure} certain, from {_count(found.labels, 'label')} drawn {drawn}"
    same = f"on the same {_count(point.n, 'label')} that chose it"
    return f"approximate {sure} bound, {same}, {found.labels:,} of them flagged"


def _recall(point: OperatingPoint) -> str:
    if point.recall.value is None:
        return "How many hallucinations it finds is unknown: none is labelled."
    known = _count(point.positives, "hallucinated label")
    if point.recall.value == 0:
        return f"It found 0 of {known} (95% interval {interval(point.recall)} of all hallucinations)."
    found = f"{percent(point.recall.value)} ({interval(point.recall, unit='')})"
    about = "" if found.startswith(("over", "under")) else "about "
    return f"It finds {about}{found} of all hallucinations ({known})."


def _standing(point: OperatingPoint, chance: float | None) -> str:
    if not point.n or point.guarantee:
        return ""
    if point.policy.startswith("manual"):
        return f"Set by hand; measured on {_count(point.n, 'label')}, not certified."
    worse = ": expect it to do somewhat worse on new traffic" if point.feasible else ""
    said = f"Measured on the same {_count(point.n, 'label')} that chose it, not certified{worse}."
    kind, _, target = point.policy.partition(">=")
    if kind != "precision" or not point.feasible:
        return said
    often = FREQUENCY if chance is None else f"in {_about(chance)} of cases"
    return f"{said} Thresholds chosen so on labels like these are truly below {_exact(float(target))} {often}."


def _about(chance: float) -> str:
    """A chance to the nearest 5%, which is what a simulated one is worth."""
    near = 5 * round(20 * chance)
    return "under 5%" if near < 5 else "over 95%" if near > 95 else f"about {near}%"


def _exact(share: float) -> str:
    """A share that was asked for, as percent in all its digits: rounding up would claim more than is known."""
    return f"{100 * share:.10g}%"


def _per_day(flags: float) -> str:
    if flags < 1:
        return "less than one a day"
    # Two digits are all that an estimated rate is worth.
    digits = max(0, len(str(int(flags))) - 2)
    return f"about {round(flags / 10**digits) * 10**digits:,} a day"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _scored(point: OperatingPoint) -> int:
    return point.true_positives + point.false_positives + point.false_negatives + point.true_negatives

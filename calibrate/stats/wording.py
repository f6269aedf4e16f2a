"""What is known about a chosen threshold, in sentences. Every percentage has its n near it."""

from __future__ import annotations

from calibrate.types import Interval, OperatingPoint

# Below about this many hallucinated labels one label more or less moves every figure.
FEW_POSITIVES = 10


def sentence(point: OperatingPoint, flags_per_day: float | None = None) -> str:
    """What the point does and how well that is known. `flags_per_day` is what it would flag a day, if that is known.

    "Flags 3.1% of traffic, about 260 a day. Of what it flags, 71% was hallucinated (95% interval 58–81%, 84 labels)..."
    """
    # A policy that no threshold meets is never passed over in silence.
    why = f"{point.why[0].upper()}{point.why[1:]}." if point.why else ""
    parts = [why, _flags(point, flags_per_day), _precision(point), _recall(point), _standing(point)]
    return " ".join(part for part in parts if part)


def cautions(point: OperatingPoint) -> list[str]:
    """What a reader of the figures must know before relying on them; empty when there is nothing to say."""
    found = []
    if point.positives < FEW_POSITIVES:
        found.append(
            f"Only {_count(point.positives, 'hallucinated label')}: one more or less moves every figure. "
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
    return "over 99%" if 99.5 <= value < 100 else f"{value:.0f}%"


def interval(figure: Interval, unit: str = "%") -> str:
    """The bounds as whole percents: `58–81%`."""
    if figure.low is None or figure.high is None:
        return "not known"
    return f"{100 * figure.low:.0f}–{100 * figure.high:.0f}{unit}"


def _flags(point: OperatingPoint, flags_per_day: float | None) -> str:
    if point.flag_rate.value is None:
        return "How much it flags is unknown: there are no labels."
    a_day = "" if flags_per_day is None else f", {_per_day(flags_per_day)}"
    return f"Flags {percent(point.flag_rate.value)} of traffic{a_day}."


def _precision(point: OperatingPoint) -> str:
    flagged = point.true_positives + point.false_positives
    if point.precision.value is None:
        return f"Its precision is unknown: none of the {_count(point.n, 'label')} is flagged."
    return (
        f"Of what it flags, {percent(point.precision.value)} was hallucinated "
        f"(95% interval {interval(point.precision)}, {_count(flagged, 'label')} flagged)."
    )


def _recall(point: OperatingPoint) -> str:
    if point.recall.value is None:
        return "How many hallucinations it finds is unknown: none is labelled."
    return (
        f"It finds about {percent(point.recall.value)} ({interval(point.recall, unit='')}) of all hallucinations "
        f"({_count(point.positives, 'hallucinated label')})."
    )


def _standing(point: OperatingPoint) -> str:
    if not point.n:
        return ""
    if point.policy.startswith("manual"):
        return f"Set by hand; measured on {_count(point.n, 'label')}, not certified."
    return (
        f"Measured on the same {_count(point.n, 'label')} that chose it, not certified: "
        "expect it to do somewhat worse on new traffic."
    )


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

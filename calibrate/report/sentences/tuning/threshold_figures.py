"""The four figures under the threshold chart: each a large text and a note with the labels behind it."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.report.numbers import about, count, interval, share
from calibrate.report.sentences.tuning.figures import lead
from calibrate.types import OperatingPoint


@dataclass(frozen=True)
class Figure:
    """A figure as it is shown: the large text, and the note below it."""

    large: str
    note: str


def figures_at(point: OperatingPoint, per_day: float | None) -> tuple[Figure, Figure, Figure, Figure]:
    """Precision, recall, false alarms and flags of a point. Where few labels were flagged the intervals are large."""
    hits, alarms = point.true_positives, point.false_positives
    flagged = hits + alarms
    large, reach = lead(point.precision, flagged)
    of_flagged = f"{reach} · {count(hits)} of {count(flagged)}" if flagged else "nothing labelled is flagged"
    finds, found_reach = lead(point.recall, flagged)
    return (
        Figure(large, of_flagged),
        Figure(finds, f"{found_reach} · {count(hits)} of {count(point.positives)}"),
        false_positive_rate(point),
        _flags(point, per_day),
    )


def false_positive_rate(point: OperatingPoint) -> Figure:
    """The share of clean traces that is flagged."""
    alarms, clean = point.false_positives, point.n - point.positives
    wrong, reach = lead(point.fpr, point.true_positives + alarms)
    return Figure(wrong, f"{reach} · {count(alarms)} of {count(clean)} clean")


def _flags(point: OperatingPoint, per_day: float | None) -> Figure:
    rate = point.flag_rate
    if rate.value is None:
        return Figure("–", "unknown")
    a_day = "a day unknown: no times" if per_day is None else f"about {about(rate.value * per_day)} a day"
    if point.counted is not None:
        counted = f"{count(point.counted.flagged)} of {count(point.counted.traffic)}"
        return Figure(share(rate.value), f"{counted} · {a_day}")
    return Figure(share(rate.value), f"{interval(rate.low, rate.high)} · {a_day}")

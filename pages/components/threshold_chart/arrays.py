"""What the chart gets from Python: the arrays of a sweep, and every number that is read as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrate.orientation import SIGNS
from calibrate.report.numbers import about, estimate, limit, number, share
from calibrate.report.sentences.tuning.point_state import HEADLINES, why_with_labels
from calibrate.report.sentences.tuning.threshold_figures import Figure, figures_at
from calibrate.types import OperatingPoint, PointState, PointVerdict, Strength
from calibrate.workflow.evidence.evidence import Evidence
from pages.components import charts

DIGITS = 5  # of a threshold that is read: labels are seldom nearer to each other
STRENGTHS: dict[Strength, str] = {"measured": "Measured", "bounded": "Bounded", "certified": "Certified"}
CODES = {PointVerdict.HOLDS: "holds", PointVerdict.NOT_SHOWN: "open", PointVerdict.DO_NOT_RELEASE: "stop"}
_EQUAL = 1e-9  # between two shares that are the same
NAMES = (
    ("Right when it flags", "Precision: the share of its flags that is hallucinated"),
    ("Finds", "Recall: the share of hallucinations that is flagged, end to end"),
    ("False alarms", "False-positive rate: the share of clean traces that is flagged"),
    ("Flags", "The share of all traffic that is flagged, and how many traces a day"),
)
COLOURS = {
    "hallucinated": charts.VERMILLION, "clean": charts.BLUE, "recall": charts.RECALL, "here": charts.HERE,
    "holds": charts.GREEN, "open": "#E69F00", "stop": charts.VERMILLION,
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """A threshold worth seeing beside the one at hand. `name` is words of ours, never of a trace."""

    kind: str
    name: str
    threshold: float


@dataclass(frozen=True)
class Beside:
    """Another detector's curves as they lie over the steps of the one at hand; `title` is its name for people."""

    title: str
    colour: str
    precision: Sequence[float | None]
    recall: Sequence[float | None]
    texts: Sequence[tuple[str, str]]


def here(
    point: OperatingPoint, per_day: float | None, state: PointState, *, unmet: str | None = None
) -> dict[str, Any]:
    """What holds at the threshold at hand, wherever between two steps it stands. `unmet`: why no threshold meets the
    policy."""
    return {
        "threshold": point.threshold,
        "text": number(point.threshold, DIGITS),
        "figures": _texts(figures_at(point, per_day)),
        "verdict": CODES[state.verdict],
        "headline": HEADLINES[state.verdict],
        "why": why_with_labels(point, state, unmet=unmet),
        "strength": STRENGTHS[point.strength],
    }


def arrays(
    data: Evidence,
    points: Iterable[OperatingPoint],
    states: Sequence[PointState],
    *,
    per_day: float | None,
    title: str,
    unit: str,
    span: tuple[float, float],
) -> dict[str, Any]:
    """The sweep as the chart draws it. `points` and `states` are those at the evidence's steps."""
    steps, weights, listed = data.steps.sweep, data.score_weights, list(points)
    tallest = float((weights.clean + weights.hallucinated).max())
    figures = {
        name: [[_brief(end) for end in (each.value, each.low, each.high)] for each in column]
        for name, column in (
            ("precision", [point.precision for point in listed]),
            ("recall", [point.recall for point in listed]),
            ("fpr", [point.fpr for point in listed]),
            ("flag_rate", [point.flag_rate for point in listed]),
        )
    }
    return {
        "title": title,
        "unit": unit,
        "above": data.flag_when == "above",
        "sign": SIGNS[data.flag_when],
        "span": list(span),
        "names": [list(name) for name in NAMES],
        "headlines": {CODES[verdict]: words for verdict, words in HEADLINES.items()},
        "colours": COLOURS,
        "thresholds": steps.thresholds.tolist(),
        "values": figures,
        "counts": {
            "true_positives": [point.true_positives for point in listed],
            "false_positives": [point.false_positives for point in listed],
        },
        "texts": [number(point.threshold, DIGITS) for point in listed],
        "figures": [_texts(figures_at(point, per_day)) for point in listed],
        "verdicts": [CODES[state.verdict] for state in states],
        "whys": [why_with_labels(point, state) for point, state in zip(listed, states, strict=True)],
        "strength": STRENGTHS["measured"],
        "bars": {
            "edges": weights.edges.tolist(),
            "clean": [_brief(value) for value in weights.clean.tolist()],
            "hallucinated": [_brief(value) for value in weights.hallucinated.tolist()],
            "unit": "Labels" if data.design is None else "Traces, by weight",
            "top": tallest,
        },
        "across": [{"value": value, "text": number(value)} for value in _round_values(*span, 10)],
        "up": [{"value": value, "text": about(value)} for value in _round_values(0.0, tallest, 4)],
        "shares": [{"value": value, "text": share(value)} for value in (0.0, 0.5, 1.0)],
    }


def beside(data: Evidence, other: Evidence, *, title: str, colour: str) -> Beside:
    """Another detector at as many flags: at every step of `data` the figures of `other` at its loosest threshold that
    flags no more of the traffic. Nothing where it flags nothing yet, and where it can flag no more."""
    steps, theirs, bounds = data.steps.sweep, other.steps.sweep, other.steps.bounds
    rates = np.asarray(theirs.flag_rate)
    at = np.searchsorted(rates, np.asarray(steps.flag_rate) + _EQUAL, side="right") - 1
    most = float(rates[-1]) + _EQUAL if len(rates) else 0.0
    able = (at >= 0) & (np.asarray(steps.flag_rate) <= most)
    figures = [
        [
            (_brief(float(value[place])), _brief(float(low[place])), _brief(float(high[place])))
            if can
            else (None, None, None)
            for place, can in zip(at.tolist(), able.tolist(), strict=True)
        ]
        for value, low, high in (
            (theirs.precision, bounds.precision_low, bounds.precision_high),
            (theirs.recall, bounds.recall_low, bounds.recall_high),
        )
    ]
    texts = [(estimate(*precision), estimate(*recall)) for precision, recall in zip(*figures, strict=True)]
    values = [[value for value, *_ in column] for column in figures]
    return Beside(title, colour, values[0], values[1], texts)


def marks(listed: Sequence[Mark], data: Evidence) -> list[dict[str, Any]]:
    """The marks with their thresholds as text."""
    return [asdict(mark) | {"text": limit(mark.threshold, data.flag_when)} for mark in listed]


def _texts(figures: Iterable[Figure]) -> list[list[str]]:
    return [[figure.large, figure.note] for figure in figures]


def _brief(value: float | None) -> float | None:
    """A figure in as many digits as a file of it needs."""
    return None if value is None or value != value else round(value, 6)


def _round_values(low: float, high: float, most: int) -> list[float]:
    """At most about `most` round numbers from `low` to `high`."""
    least = (high - low) / most
    if not least > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(least))
    step = next(nice * power for nice in (1, 2, 5, 10) if nice * power >= least)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(place * step, 12) for place in range(first, last + 1)]

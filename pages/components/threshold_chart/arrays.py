"""What the chart gets from Python: the arrays of a sweep, and every number that is read as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from calibrate.orientation import SIGNS
from calibrate.report.numbers import about, limit, number, share
from calibrate.report.sentences.point_state import HEADLINES
from calibrate.report.sentences.threshold_figures import Figure, figures_at
from calibrate.types import OperatingPoint, PointVerdict
from calibrate.workflow.evidence.evidence import Evidence
from pages.components import charts

DIGITS = 5  # of a threshold that is read: labels are seldom nearer to each other
CODES = {PointVerdict.HOLDS: "holds", PointVerdict.NOT_SHOWN: "open", PointVerdict.DO_NOT_RELEASE: "stop"}
NAMES = (
    ("Right when it flags", "Precision: the share of its flags that is hallucinated"),
    ("Finds", "Recall: the share of hallucinations that is flagged, end to end"),
    ("False alarms", "False-positive rate: the share of clean traces that is flagged"),
    ("Flags", "The share of all traffic that is flagged, and how many traces a day"),
)
COLOURS = {
    "hallucinated": charts.VERMILLION, "clean": charts.BLUE, "recall": charts.RECALL, "here": charts.HERE,
    "holds": charts.BLUE, "open": "#E69F00", "stop": charts.VERMILLION,
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """A threshold worth seeing beside the one at hand. `name` is words of ours, never of a trace."""

    kind: str
    name: str
    threshold: float


def here(point: OperatingPoint, per_day: float | None, verdict: PointVerdict) -> dict[str, Any]:
    """What holds at the threshold at hand, wherever between two steps it stands."""
    return {
        "threshold": point.threshold,
        "text": number(point.threshold, DIGITS),
        "figures": _texts(figures_at(point, per_day)),
        "verdict": CODES[verdict],
    }


def arrays(
    data: Evidence,
    points: Iterable[OperatingPoint],
    verdicts: Sequence[PointVerdict],
    *,
    per_day: float | None,
    title: str,
    unit: str,
    span: tuple[float, float],
) -> dict[str, Any]:
    """The sweep as the chart draws it. `points` and `verdicts` are those at the evidence's steps."""
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
        "verdicts": [CODES[verdict] for verdict in verdicts],
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

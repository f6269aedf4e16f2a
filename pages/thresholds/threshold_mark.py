"""The threshold at hand, drawn into the Tune page's charts: they stand while it moves."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from calibrate.types import OperatingPoint
from pages.components import charts

_mark = st.components.v2.component(
    "touchstone_threshold_mark", js=(Path(__file__).parent / "threshold_mark.js").read_text(encoding="utf-8")
)


def show(point: OperatingPoint, span: tuple[float, float]) -> None:
    """Marks the point in the charts `tune_bars`, whose scores are `span`, and `tune_curve`, of the same container."""
    _mark(
        key="tune_mark",
        data={
            "across": (point.threshold - span[0]) / (span[1] - span[0]),
            "span": list(span),
            "above": point.flag_when == "above",
            # A point whose precision is unknown (it flags no label) is not on the curve.
            "dot": _dot(point.recall.value, point.precision.value),
            "colour": charts.HERE,
            "tint": charts.FAINT,
        },
    )


def _dot(recall: float | None, precision: float | None) -> list[float] | None:
    """The place on the curve's chart, from 0 to 1 on each axis."""
    low, high = charts.SHARES
    return (
        None if recall is None or precision is None else [(share - low) / (high - low) for share in (recall, precision)]
    )

"""The charts of the Tune page, and the threshold at hand drawn into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.report.sentences import figures as wording
from calibrate.stats.choosing.policy import parse
from calibrate.stats.intervals.sweep_intervals import AT_ONCE, figures
from calibrate.types import OperatingPoint
from calibrate.workflow.evidence import evidence
from calibrate.workflow.releasing import history
from db import Store
from pages.components import charts
from pages.thresholds import policy_controls, tune_setting

_mark = st.components.v2.component(
    "touchstone_threshold_mark", js=(Path(__file__).parent / "threshold_mark.js").read_text(encoding="utf-8")
)

BAND = "tune_band"


def marks_of(
    data: evidence.Evidence, ruled: OperatingPoint, elbow: OperatingPoint, live: float | None
) -> list[charts.Mark]:
    """The points worth seeing on the curve beside the threshold at hand: the policy's, the elbow, the live one."""
    marks = []
    if ruled.feasible and ruled.policy != elbow.policy:
        marks.append(charts.Mark("policy", _legend(ruled), ruled.threshold, ruled.precision, ruled.recall))
    marks.append(charts.Mark("elbow", "Elbow", elbow.threshold, elbow.precision, elbow.recall))
    if live is not None:
        measured = figures(data.sweep, live)
        marks.append(charts.Mark("live", "Live release", live, measured.precision, measured.recall))
    return marks


def _legend(point: OperatingPoint) -> str:
    """A point's policy: "Precision at least 70%, bounded"."""
    words = wording.policy_in_words(parse(point.policy))
    return f"{words[:1].upper()}{words[1:]}" + (f", {point.strength}" if point.guarantee else "")


def show_charts(data: evidence.Evidence, marks: Sequence[charts.Mark], *, together: bool) -> None:
    """The charts, drawn once wherever the threshold stands. `together`: with bounds for all thresholds at once."""
    curve, bars = tune_setting.once(data, ("charts", together, tuple(marks)), lambda: _charts(data, together, marks))
    with st.container(key="tune-charts"):
        left, right = st.columns(2, gap="medium")
    with left:
        _chart(curve, "tune_curve")
    with right:
        _chart(bars, "tune_bars")


def show_threshold(data: evidence.Evidence, setting: tune_setting.Setting, point: OperatingPoint) -> None:
    """The threshold below the charts, to type or to drag."""
    with st.container(key="tune-slide"):
        left, right = st.columns(2, gap="medium")
    with left, st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        policy_controls.type_in(data, setting)
        st.toggle(
            "Bounds for all thresholds at once",
            key=BAND,
            help="Pointwise bounds hold at one threshold, named beforehand. Who looks along the curve for a good place "
            f"needs wider ones: these hold at some {AT_ONCE} thresholds together (Bonferroni).",
        )
    with right, st.container(key="tune-slider", gap=None):
        policy_controls.slide(data, setting)
        _show_mark(point, tune_setting.span_of(data))


def _charts(data: evidence.Evidence, together: bool, marks: Sequence[charts.Mark]) -> tuple[Any, Any]:
    band = data.outline.together if together else data.outline.pointwise
    words = f"95%, {AT_ONCE} thresholds at once" if together else "95%, pointwise"
    curve = charts.precision_recall(data.outline.sweep, band, marks, band_name=words)
    unit, span = registry.get(data.config.name).unit, tune_setting.span_of(data)
    return curve, charts.scores_by_label(data.histogram, data.outline.sweep, unit=unit, span=span)


def _chart(figure: Any, key: str) -> None:
    st.plotly_chart(
        figure,
        key=key,
        on_select=lambda: policy_controls.clicked(key),
        selection_mode="points",
        config=charts.CONFIG,
    )


def _dot(recall: float | None, precision: float | None) -> list[float] | None:
    """The point's place on the precision-recall chart, from 0 to 1 on each axis."""
    low, high = charts.SHARES
    return (
        None if recall is None or precision is None else [(share - low) / (high - low) for share in (recall, precision)]
    )


def _show_mark(point: OperatingPoint, span: tuple[float, float]) -> None:
    """Mark the point in the charts `tune_bars`, whose scores span `span`, and `tune_curve`."""
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


def live_threshold(store: Store, data: evidence.Evidence) -> float | None:
    """The threshold in production, if it is for the same version and parameters of the detector."""
    newest = store.releases.list()[:1]
    entry = history.read_release(newest[0]).detectors.get(data.config.name) if newest else None
    matches = entry is not None and (entry.version, entry.params) == (data.config.version, data.config.params)
    return entry.threshold if entry is not None and matches else None

"""The charts of the Tune page: that with the handle, and the precision-recall curve under Details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from calibrate import registry
from calibrate.report.names import title_of
from calibrate.report.sentences.tuning import figures as wording
from calibrate.stats.choosing.policy import parse
from calibrate.stats.choosing.pool import Pool
from calibrate.stats.intervals.sweep_intervals import AT_ONCE, Band, figures
from calibrate.types import OperatingPoint
from calibrate.workflow.evidence import evidence
from calibrate.workflow.releasing import history
from calibrate.workflow.tuning.states_along import points_along, states_along
from db import Store
from pages.components import charts
from pages.components.threshold_chart import arrays as made
from pages.components.threshold_chart import chart
from pages.thresholds import policy_controls, tune_setting

BAND = "tune_band"
BESIDE = (charts.GREEN, "#E69F00", "#56B4E9")  # of detectors laid over: told apart by colour-blind eyes, too


@dataclass(frozen=True)
class Beside:
    """What a chart needs beside the labels: the traffic, its traces a day, the chance of the policy at hand to miss its
    target, what holds at the threshold at hand, and the same labels beside the scores of the `others` to lay over."""

    counted: Pool | None
    per_day: float | None
    chance: float | None
    here: Mapping[str, Any]
    others: Mapping[str, evidence.Evidence]


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


def show_chart(
    data: evidence.Evidence, setting: tune_setting.Setting, marks: Sequence[charts.Mark], beside: Beside
) -> None:
    """The chart with the handle, drawn once wherever the threshold stands."""
    detector = registry.get(data.config.name)

    def make() -> dict[str, Any]:
        return made.arrays(
            data,
            points_along(data, beside.counted),
            states_along(data, chance=beside.chance, moved_from=str(setting.rule)),
            per_day=beside.per_day,
            title=detector.title,
            unit=detector.unit,
            span=tune_setting.span_of(data),
        )

    sweep = tune_setting.once(data, ("arrays", beside.chance, str(setting.rule), beside.counted is None), make)
    over = [
        tune_setting.once(
            data,
            ("beside", name, other.config.id, place),
            partial(made.beside, data, other, title=title_of(name), colour=BESIDE[place]),
        )
        for place, (name, other) in enumerate(beside.others.items())
        if not other.sweep.missing
    ]
    shown = made.marks([made.Mark(mark.kind, mark.name, mark.threshold) for mark in marks], data)
    link = {"detector": data.config.name, "sample": data.sample.name if data.sample else ""}
    chart.show(tune_setting.name_of(setting), sweep, shown, beside.here, beside=over, link=link)


def show_curve(data: evidence.Evidence, marks: Sequence[charts.Mark]) -> None:
    """Precision against recall with its bounds; a click on it takes a threshold."""
    band, words = _choose_bounds(data)
    curve = tune_setting.once(
        data,
        ("curve", words, tuple(marks)),
        lambda: charts.precision_recall(data.outline.sweep, band, marks, band_name=words),
    )
    _show_clickable(curve, "tune_curve")


def show_false_positives(data: evidence.Evidence, threshold: float) -> None:
    """The false-positive rate at every threshold with its bounds; a click on it takes a threshold."""
    band, words = _choose_bounds(data)
    unit, span = registry.get(data.config.name).unit, tune_setting.span_of(data)
    curve = charts.false_positive_rate(data.outline.sweep, band, threshold, unit=unit, span=span, band_name=words)
    _show_clickable(curve, "tune_false_positives")


def _choose_bounds(data: evidence.Evidence) -> tuple[Band, str]:
    """The bounds of a curve, pointwise or wider, and what they are called."""
    together = st.toggle(
        "Bounds for all thresholds at once",
        key=BAND,
        help="Pointwise bounds hold at one threshold, named beforehand. Who looks along the curve for a good place "
        f"needs wider ones: these hold at some {AT_ONCE} thresholds together (Bonferroni).",
    )
    if together:
        return data.outline.together, f"95%, {AT_ONCE} thresholds at once"
    return data.outline.pointwise, "95%, pointwise"


def _show_clickable(curve: go.Figure, key: str) -> None:
    st.plotly_chart(
        curve, key=key, on_select=lambda: policy_controls.clicked(key), selection_mode="points", config=charts.CONFIG
    )


def show_without_threshold(data: evidence.Evidence) -> None:
    """The charts of labels that no threshold can be chosen on: they do not describe the traffic."""
    left, right = st.columns(2, gap="medium")
    with left:
        show_curve(data, [])
    unit, span = registry.get(data.config.name).unit, tune_setting.span_of(data)
    bars = charts.scores_by_label(data.histogram, data.outline.sweep, unit=unit, span=span)
    right.plotly_chart(bars, key="tune_bars", config=charts.CONFIG)


def live_threshold(store: Store, data: evidence.Evidence) -> float | None:
    """The threshold in production, if it is for the same version and parameters of the detector."""
    newest = store.releases.list()[:1]
    entry = history.read_release(newest[0]).detectors.get(data.config.name) if newest else None
    matches = entry is not None and (entry.version, entry.params) == (data.config.version, data.config.params)
    return entry.threshold if entry is not None and matches else None

"""Charts of a sweep in one style. They draw what the statistics return and compute nothing.

The colours work on a light and on a dark page; text, grid and background come from Streamlit's theme. Hover text holds
numbers and fixed words only: plotly reads a kind of HTML there, and text of traces is not to be trusted. Names go
through `text.charted`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from calibrate.orientation import SIGNS
from calibrate.stats.intervals.sweep_intervals import Band
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Sweep
from calibrate.types import FlagWhen, Interval
from calibrate.workflow.evidence.evidence import MOST_POINTS, Histogram
from pages.components.text import charted

VERMILLION, BLUE, GREEN, GREY = "#D55E00", "#0072B2", "#009E73", "#8A8F98"
QUIET, FAINT, GRID = "rgba(138,143,152,.28)", "rgba(138,143,152,.10)", "rgba(138,143,152,.18)"
HERE = "#C8941A"  # the threshold at hand: the accent, between its light and its dark form
PRECISION, RECALL = "#7A828E", "#CC79A7"
NARROW = 38  # letters of an axis title that a telephone shows in one line
HEIGHT = 420
SHARES = (-0.02, 1.03)  # the range of an axis of shares: points on its edges are seen whole
# Okabe and Ito's colours, which colour-blind eyes tell apart, and dashes for those who see none.
_LINES = (
    (BLUE, "solid"),
    (RECALL, "dash"),
    (GREEN, "dot"),
    ("#E69F00", "dashdot"),
    ("#56B4E9", "longdash"),
    (GREY, "longdashdot"),
)
# Plotly selects points by click only where there are markers; these are there without being seen.
UNSEEN = {"size": 13, "opacity": 0}
SEEN = {"marker": {"opacity": 1}}
CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": "reset"}

Kind = Literal["policy", "elbow", "live"]
_LOOKS: dict[Kind, dict[str, Any]] = {
    "live": {"symbol": "square-open", "size": 15, "color": GREY, "line": {"width": 2}},
    "policy": {"symbol": "circle-open", "size": 17, "color": HERE, "line": {"width": 2}},
    "elbow": {"symbol": "diamond-open", "size": 13, "color": BLUE, "line": {"width": 2}},
}
# Drawn apart, into the chart as it stands: a chart is not drawn anew while the threshold moves. This is its legend.
_HERE = {
    "type": "scatter",
    "x": [None],
    "y": [None],
    "mode": "markers",
    "marker": {"symbol": "circle", "size": 10, "color": HERE},
    "name": "This threshold",
}


@dataclass(frozen=True)
class Mark:
    """A point worth showing on the curve. `name` is its legend: words of ours, never of a trace."""

    kind: Kind
    name: str
    threshold: float
    precision: Interval
    recall: Interval


def template(*, height: int = HEIGHT) -> dict[str, Any]:
    """The layout that all charts share."""
    return {
        "height": height,
        "margin": {"l": 52, "r": 10, "t": 34, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 13},
        "hovermode": "closest",
        "hoverlabel": {"font": {"size": 13}, "align": "left"},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": 12},
            "traceorder": "normal",
            "itemclick": False,
            "itemdoubleclick": False,
        },
    }


def axis(title: str, *, standoff: int = 8, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": standoff},
        "zeroline": False,
        "gridcolor": GRID,
        "fixedrange": True,
        **more,
    }


def share_axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis of shares, 0 to 1, in percent."""
    return axis(title, **{"range": list(SHARES), "tickformat": ".0%", "dtick": 0.25, **more})


def precision_recall(
    sweep: Sweep, band: Band, marks: Sequence[Mark], *, band_name: str = "95%, pointwise"
) -> go.Figure:
    """Precision against recall with its 95% band and the marked points. `band` belongs to `sweep`.

    The threshold at hand is in the legend only: tune_charts draws its dot, so that the chart need not be redrawn. Every
    point of the curve carries its threshold as customdata, for clicks.
    """
    shade = {
        "type": "scatter",
        "x": np.concatenate([sweep.recall, sweep.recall[::-1]]),
        "y": np.concatenate([band.precision_high, band.precision_low[::-1]]),
        "fill": "toself",
        "fillcolor": QUIET,
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "name": band_name,
    }
    curve = {
        **_curve(sweep.recall, sweep.precision, GREY),
        "customdata": np.stack([sweep.thresholds, band.precision_low, band.precision_high], axis=-1),
        "hovertemplate": (
            f"threshold {SIGNS[sweep.flag_when]} %{{customdata[0]:.4~g}}<br>"
            "precision %{y:.0%} (%{customdata[1]:.0%} to %{customdata[2]:.0%})<br>recall %{x:.0%}<extra></extra>"
        ),
        "name": "measured",
        "showlegend": False,
    }
    ordered = sorted(marks, key=lambda mark: list(_LOOKS).index(mark.kind))
    # A point whose precision is unknown (it flags no label) is not on the curve.
    points = [_point(mark, sweep.flag_when) for mark in ordered if mark.precision.value is not None]
    layout = {
        **template(),
        "xaxis": share_axis("Recall: share of hallucinations that is flagged"),
        "yaxis": share_axis("Precision: share of flags that is right"),
    }
    return go.Figure({"data": [shade, curve, *points, _HERE], "layout": layout})


def false_positive_rate(
    sweep: Sweep,
    band: Band,
    threshold: float,
    *,
    unit: str,
    span: tuple[float, float],
    band_name: str = "95%, pointwise",
) -> go.Figure:
    """The share of clean traces that is flagged, against the threshold, with its 95% band and the threshold at hand.
    `band` belongs to `sweep`; every point of the curve carries its threshold as customdata, for clicks."""
    edge = {"type": "scatter", "x": sweep.thresholds, "mode": "lines", "hoverinfo": "skip"}
    edge["line"] = {"width": 0, "shape": "hv"}
    low = {**edge, "y": band.fpr_low, "showlegend": False}
    high = {**edge, "y": band.fpr_high, "fill": "tonexty", "fillcolor": QUIET, "name": band_name}
    stairs = _curve(sweep.thresholds, sweep.fpr, BLUE)
    curve = {
        **stairs,
        "line": {**stairs["line"], "shape": "hv"},
        "customdata": np.stack([sweep.thresholds, band.fpr_low, band.fpr_high], axis=-1),
        "hovertemplate": (
            f"threshold {SIGNS[sweep.flag_when]} %{{customdata[0]:.4~g}}<br>"
            "%{y:.0%} of clean traces flagged (%{customdata[1]:.0%} to %{customdata[2]:.0%})<extra></extra>"
        ),
        "name": "measured",
        "showlegend": False,
    }
    here = {
        "type": "scatter",
        "x": [threshold, threshold],
        "y": [0, 1],
        "mode": "lines",
        "line": {"color": HERE, "width": 2, "dash": "dot"},
        "hoverinfo": "skip",
        "name": "This threshold",
    }
    layout = {
        **template(),
        "xaxis": axis("<br>".join(wrap(f"Score: {unit}", NARROW)), range=list(span), showgrid=False, automargin=True),
        "yaxis": share_axis("Share of clean traces flagged"),
    }
    return go.Figure({"data": [low, high, curve, here], "layout": layout})


def curves(named: Sequence[tuple[str, Sweep]]) -> go.Figure:
    """Precision against recall, up to six curves in one chart. The names are the legend."""
    data = []
    for (name, sweep), (colour, dash) in zip(named, _LINES, strict=False):
        thin = sweep.thin(MOST_POINTS)
        data.append(
            {
                **_curve(thin.recall, thin.precision, colour),
                "mode": "lines",
                "line": {"color": colour, "width": 2, "dash": dash},
                "customdata": thin.thresholds[:, None],
                "hovertemplate": (
                    f"threshold {SIGNS[sweep.flag_when]} %{{customdata[0]:.4~g}}<br>"
                    "precision %{y:.0%}, recall %{x:.0%}<extra></extra>"
                ),
                "name": charted(name),
                "showlegend": True,
            }
        )
    layout = {
        **template(height=360),
        "xaxis": share_axis("Recall: share of hallucinations that is flagged"),
        "yaxis": share_axis("Precision: share of flags that is right"),
    }
    return go.Figure({"data": data, "layout": layout})


def scores_by_label(histogram: Histogram, sweep: Sweep, *, unit: str, span: tuple[float, float]) -> go.Figure:
    """Labels by score above; precision and recall against the threshold below.

    Bars and curves carry as customdata the threshold that a click on them chooses: a click on a bar flags all of it.
    """
    curves = (("precision", sweep.precision, PRECISION, "solid"), ("recall", sweep.recall, RECALL, "dot"))
    data = [*_bars(histogram, sweep.flag_when), *(_against(sweep, *curve) for curve in curves)]
    layout = {
        **template(),
        "barmode": "stack",
        "bargap": 0,
        # A title in one line is cut on a telephone.
        "xaxis": axis(
            "<br>".join(wrap(f"Score: {unit}", NARROW)), range=list(span), showgrid=False, anchor="y2", automargin=True
        ),
        "yaxis": axis("Labels", domain=[0.45, 1], rangemode="tozero", nticks=4, tickformat=",d"),
        "yaxis2": share_axis("", domain=[0, 0.39], dtick=0.5),
    }
    return go.Figure({"data": data, "layout": layout})


def _curve(x: Floats, y: Floats, colour: str) -> dict[str, Any]:
    unseen = {"marker": {"opacity": 0}}
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2},
        "marker": {**UNSEEN, "color": colour},
        "selected": unseen,
        "unselected": unseen,
    }


def _point(mark: Mark, flag_when: FlagWhen) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [mark.recall.value],
        "y": [mark.precision.value],
        "customdata": [[mark.threshold]],
        "mode": "markers",
        "marker": _LOOKS[mark.kind],
        "selected": SEEN,
        "unselected": SEEN,
        "name": mark.name,
        "hovertemplate": (
            f"{mark.name}<br>threshold {SIGNS[flag_when]} %{{customdata[0]:.4~g}}<br>"
            "precision %{y:.0%}, recall %{x:.0%}<extra></extra>"
        ),
    }


def _bars(histogram: Histogram, flag_when: FlagWhen) -> Iterator[dict[str, Any]]:
    low, high = histogram.edges[:-1], histogram.edges[1:]
    series = (("clean", histogram.clean, BLUE), ("hallucinated", histogram.hallucinated, VERMILLION))
    for name, counts, colour in series:
        yield {
            "type": "bar",
            "x": (low + high) / 2,
            "y": counts,
            "width": high - low,
            "customdata": np.stack([low if flag_when == "above" else high, low, high], axis=-1),
            "marker": {"color": colour, "line": {"width": 0}},
            "selected": SEEN,
            "unselected": SEEN,
            "name": name,
            "hovertemplate": f"%{{y:,}} {name}<br>at %{{customdata[1]:.3~g}} to %{{customdata[2]:.3~g}}<extra></extra>",
        }


def _against(sweep: Sweep, name: str, values: Floats, colour: str, dash: str) -> dict[str, Any]:
    curve = _curve(sweep.thresholds, values, colour)
    return {
        **curve,
        # Points run strict to loose; what is measured at one score holds until the next, looser one is reached.
        "line": {**curve["line"], "dash": dash, "shape": "hv"},
        "customdata": sweep.thresholds[:, None],
        "yaxis": "y2",
        "name": name,
        "hovertemplate": f"{name} %{{y:.0%}} at threshold {SIGNS[sweep.flag_when]} %{{x:.4~g}}<extra></extra>",
    }

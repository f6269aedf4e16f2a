"""Charts of an ensemble, in the style of `charts`. They compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from calibrate.report.names import title_of
from calibrate.report.numbers import decimals
from calibrate.report.sentences.tuning.ensembles import compared_name
from calibrate.stats.ensembles.cascade import Frontier
from calibrate.stats.ensembles.joint import Correlation
from calibrate.types import Interval
from calibrate.workflow.tuning.ensemble_judging import Compared
from pages.components.charts import BLUE, GREY, HERE, axis, share_axis, template
from pages.components.text import charted

# Blue through grey to vermillion, safe for colour-blind eyes; pale, so that one dark text is legible on light pages and
# on dark ones.
_DIVERGING = [[0, "#7FB8DC"], [0.5, "#E4E6EA"], [1, "#F0A066"]]
_INK = "#1F2329"


def recalls(compared: Sequence[Compared], chosen: str, best: Interval) -> go.Figure:
    """Recall at the budget with its 95% interval: single detectors above, ensembles below, the chosen one in the
    accent.

    The dotted line is the best single detector's, chosen inside the folds.
    """
    rows = [row for row in compared if row.figures.recall.value is not None][::-1]
    values = [row.figures.recall for row in rows]
    colours = [HERE if compared_name(row) == chosen else GREY if row.single else BLUE for row in rows]
    bars = {
        "type": "scatter",
        "mode": "markers",
        "x": [figure.value for figure in values],
        "y": [charted(compared_name(row)) for row in rows],
        "error_x": {
            "array": [(figure.high or 0) - (figure.value or 0) for figure in values],
            "arrayminus": [(figure.value or 0) - (figure.low or 0) for figure in values],
            "color": GREY,
            "thickness": 1.2,
            "width": 3,
        },
        "marker": {"size": 11, "color": colours},
        "customdata": [[figure.low, figure.high] for figure in values],
        "hovertemplate": "%{y}: %{x:.0%} (%{customdata[0]:.0%} to %{customdata[1]:.0%})<extra></extra>",
        "showlegend": False,
    }
    top = max([figure.high or 0 for figure in values], default=1.0)
    layout = {
        **template(height=110 + 30 * len(rows)),
        "margin": {"l": 10, "r": 10, "t": 10, "b": 44},
        "xaxis": share_axis("Share of hallucinations found", range=[-0.01, min(1.03, 1.08 * top)], dtick=None),
        "yaxis": axis("", showgrid=False, automargin=True, type="category"),
        "shapes": [] if best.value is None else [_line(best.value)],
    }
    return go.Figure({"data": [bars], "layout": layout})


def heat_map(correlation: Correlation) -> go.Figure:
    """Rank correlation of every two detectors, with the number in the cell."""
    names = [charted(title_of(name)) for name in correlation.names]
    heat = {
        "type": "heatmap",
        "z": correlation.rho,
        "x": names,
        "y": names,
        "zmin": -1,
        "zmax": 1,
        "colorscale": _DIVERGING,
        "showscale": False,
        "customdata": correlation.n,
        "text": [[_number(rho) for rho in row] for row in correlation.rho],
        "texttemplate": "%{text}",
        "textfont": {"color": _INK},
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
        "hovertemplate": "%{y} and %{x}: %{z:.2f}, %{customdata:,} clean labels<extra></extra>",
    }
    plain: dict[str, Any] = {"showgrid": False, "fixedrange": True, "automargin": True, "type": "category"}
    layout = {
        **template(height=150 + 42 * len(correlation.names)),
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
        "xaxis": plain,
        "yaxis": {**plain, "autorange": "reversed"},
    }
    return go.Figure({"data": [heat], "layout": layout})


def frontier(frontier: Frontier) -> go.Figure:
    """Recall at the budget against how many of 1,000 traces reach the expensive detector, with its band."""
    steps = [step for step in frontier.steps if step.recall.value is not None]
    x = [step.traces for step in steps]
    low, high = [step.recall.low for step in steps], [step.recall.high for step in steps]
    shade = {
        "type": "scatter",
        "x": [*x, *x[::-1]],
        "y": [*high, *low[::-1]],
        "fill": "toself",
        "fillcolor": "rgba(138,143,152,.16)",
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "name": "95%, each point by itself",
    }
    priced = any(step.dollars is not None for step in steps)
    curve = {
        "type": "scatter",
        "x": x,
        "y": [step.recall.value for step in steps],
        "mode": "lines+markers",
        "line": {"color": BLUE, "width": 2},
        "marker": {"size": 8, "color": BLUE},
        "customdata": [[step.dollars] for step in steps],
        "hovertemplate": (
            "asked about %{x:.0f} of 1,000<br>recall %{y:.0%}"
            + ("<br>$%{customdata[0]:.2f} per 1,000" if priced else "")
            + "<extra></extra>"
        ),
        "name": "recall at the budget",
    }
    top = max([bound or 0 for bound in high], default=1.0)
    layout = {
        **template(height=340),
        "xaxis": axis("Traces of 1,000 that reach the expensive detector", range=[-20, 1020], tickformat=",d"),
        "yaxis": share_axis("Share of hallucinations found", range=[-0.01, min(1.03, 1.08 * top)], dtick=None),
    }
    return go.Figure({"data": [shade, curve], "layout": layout})


def _number(rho: float) -> str:
    return f"{decimals(rho, 2)}".replace("-", "−") if np.isfinite(rho) else "–"


def _line(x: float) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": GREY, "width": 1.5, "dash": "dot"},
        "layer": "below",
    }

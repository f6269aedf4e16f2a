"""How often the application hallucinated by week, as a chart: for the home page and the weekly report."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from itertools import pairwise
from typing import Any

from calibrate.report.sentences.rates import figures, name_of
from calibrate.sanitize import visible
from calibrate.workflow.week.rates import Rates, Series, start_of

ALL = "all answers"
# Okabe and Ito's colours, but for those that mean hallucinated and clean; forms for those who see none.
LOOKS = (("#009E73", "circle"), ("#E69F00", "square"), ("#56B4E9", "diamond"), ("#CC79A7", "triangle-up"))
GRID = "rgba(138,143,152,.18)"
WEEK = timedelta(weeks=1)
BESIDE = timedelta(hours=10)  # between the values of one week, so that no bar hides another
LONGEST = 32  # characters of a value's name


def rate_chart(rates: Rates, *, height: int = 220) -> dict[str, Any]:
    """One line a value, with the 95% intervals as bars, in plotly's words. Plotly reads a kind of HTML in names."""
    names = {week.monday: name_of(week) for series in rates.series for week in series.weeks}
    highest = max((week.rate.high or 0.0 for series in rates.series for week in series.weeks), default=1.0)
    return {
        "data": [_line(series, place, named=rates.by is not None) for place, series in enumerate(rates.series)],
        "layout": {
            "height": height,
            "margin": {"l": 44, "r": 10, "t": 8 if rates.by is None else 34, "b": 28},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"size": 12, "color": "#7A828E"},
            "hovermode": "closest",
            "showlegend": rates.by is not None,
            "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "itemclick": False},
            "xaxis": {
                "showgrid": False,
                "fixedrange": True,
                "tickvals": [monday.isoformat() for monday in sorted(names)],
                "ticktext": [names[monday].partition("-")[2] for monday in sorted(names)],
            },
            "yaxis": {
                "range": [0, max(0.05, min(1.0, 1.1 * highest))],
                "tickformat": ".0%",
                "nticks": 5,
                "gridcolor": GRID,
                "zeroline": False,
                "fixedrange": True,
            },
        },
    }


def _line(series: Series, place: int, *, named: bool) -> dict[str, Any]:
    weeks = [week for week in series.weeks if week.rate.value is not None]
    values = [week.rate.value or 0.0 for week in weeks]
    joined = all(later.monday - week.monday == WEEK for week, later in pairwise(weeks))
    colour, symbol = LOOKS[place % len(LOOKS)]
    name = visible(series.value, LONGEST) if named else ALL
    return {
        "type": "scatter",
        "x": [(start_of(week.monday) + place * BESIDE).strftime("%Y-%m-%d %H:%M") for week in weeks],
        "y": values,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [(week.rate.high or value) - value for week, value in zip(weeks, values, strict=True)],
            "arrayminus": [value - (week.rate.low or 0.0) for week, value in zip(weeks, values, strict=True)],
            "thickness": 1.2,
            "width": 3,
        },
        "mode": "lines+markers" if joined else "markers",  # a line would speak for the weeks between
        "line": {"color": colour, "width": 1.5, "dash": "dot"},
        "marker": {"size": 8, "symbol": symbol, "color": colour},
        "name": escape(name, quote=False),
        "customdata": [[name_of(week), figures(week)] for week in weeks],
        "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra></extra>",
    }

"""How often the application hallucinated by week, as a chart: for the home page and the weekly report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from html import escape
from itertools import pairwise
from typing import Any

from calibrate.report.numbers import count
from calibrate.report.sentences.watching.rates import figures, name_of
from calibrate.sanitize import visible
from calibrate.workflow.week.rates import Rates, Series, WeekRate, start_of

ALL = "all answers"
# Okabe and Ito's colours, but for those that mean hallucinated and clean; forms for those who see none.
LOOKS = (("#009E73", "circle"), ("#E69F00", "square"), ("#56B4E9", "diamond"), ("#CC79A7", "triangle-up"))
GRID = "rgba(138,143,152,.18)"
WEEK = timedelta(weeks=1)
BESIDE = timedelta(hours=10)  # between the values of one week, so that no bar hides another
LONGEST = 32  # characters of a value's name
FEW = 10  # labels of a week that leave its rate open by some 60 points
PALE = 0.45
TOPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Where the scale may end below 100%."""


def rate_chart(rates: Rates, *, height: int = 220) -> dict[str, Any]:
    """One line a value, with the 95% intervals as bars and the labels under each week, in plotly's words.

    Weeks with FEW labels or fewer are drawn pale and do not set the scale: their bars run out of it, and a point above
    it stands at its edge as an arrow. Plotly reads a kind of HTML in names.
    """
    weeks = [week for series in rates.series for week in series.weeks]
    names = {week.monday: name_of(week).partition("-")[2] for week in weeks}
    labels = Counter[date]()
    for week in weeks:
        labels[week.monday] += week.labels
    top = _top(weeks)
    beside = BESIDE if len(weeks) > len(names) else timedelta()
    lines = [
        _lines(series, place, top, place * beside, named=rates.by is not None)
        for place, series in enumerate(rates.series)
    ]
    return {
        "data": [line for pair in lines for line in pair],
        "layout": {
            "height": height,
            "margin": {"l": 44, "r": 10, "t": 12 if rates.by is None else 34, "b": 42},
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
                "ticktext": [f"{names[monday]}<br>{count(labels[monday])}" for monday in sorted(names)],
            },
            "yaxis": {
                "range": [0, top],
                "tickformat": ".0%",
                "nticks": 5,
                "gridcolor": GRID,
                "zeroline": False,
                "fixedrange": True,
            },
        },
    }


def _top(weeks: Sequence[WeekRate]) -> float:
    """Where the scale ends: a round share above all bars of weeks with more than FEW labels, where there are any."""
    weighty = [week for week in weeks if week.labels > FEW] or weeks
    highest = max((week.rate.high or week.rate.value or 0.0 for week in weighty), default=1.0)
    return next((top for top in TOPS if top >= highest), 1.0)


def _lines(series: Series, place: int, top: float, beside: timedelta, *, named: bool) -> Iterator[dict[str, Any]]:
    """The weeks with labels enough, and those with few, of one colour."""
    weeks = [week for week in series.weeks if week.rate.value is not None]
    few = [week for week in weeks if week.labels <= FEW]
    enough = [week for week in weeks if week.labels > FEW]
    if enough or not few:
        yield _line(series, enough, place, top, beside, named=named)
    if few:
        pale = {"opacity": PALE, "cliponaxis": False, "showlegend": named and not enough}
        yield _line(series, few, place, top, beside, named=named) | pale


def _line(
    series: Series, weeks: Sequence[WeekRate], place: int, top: float, beside: timedelta, *, named: bool
) -> dict[str, Any]:
    values = [min(week.rate.value or 0.0, top) for week in weeks]
    joined = all(later.monday - week.monday == WEEK for week, later in pairwise(weeks))
    colour, symbol = LOOKS[place % len(LOOKS)]
    name = visible(series.value, LONGEST) if named else ALL
    return {
        "type": "scatter",
        "x": [(start_of(week.monday) + beside).strftime("%Y-%m-%d %H:%M") for week in weeks],
        "y": values,
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [max((week.rate.high or value) - value, 0.0) for week, value in zip(weeks, values, strict=True)],
            "arrayminus": [value - min(week.rate.low or 0.0, value) for week, value in zip(weeks, values, strict=True)],
            "thickness": 1.2,
            "width": 3,
        },
        "mode": "lines+markers" if joined else "markers",  # a line would speak for the weeks between
        "line": {"color": colour, "width": 1.5, "dash": "dot"},
        "marker": {
            "size": 8,
            "symbol": ["arrow-up" if top < 1 and (week.rate.value or 0.0) >= top else symbol for week in weeks],
            "color": colour,
        },
        "name": escape(name, quote=False),
        "legendgroup": str(place),
        "customdata": [[name_of(week), figures(week)] for week in weeks],
        "hovertemplate": "%{customdata[0]}: %{customdata[1]}<extra></extra>",
    }

"""The chart of the weekly rate holds the bounds of its intervals, and names of models as text."""

from __future__ import annotations

from datetime import date

import plotly.graph_objects as go
import pytest

from calibrate.report.rate_chart import rate_chart
from calibrate.types import Interval
from calibrate.workflow.week.rates import Rates, Series, WeekRate

NASTY = "<b>m</b>%{y}"


def rates(*values: str | None) -> Rates:
    weeks = (
        WeekRate(date(2026, 11, 9), 140, 67, 28, 0, Interval(0.28, 0.2, 0.375), None),
        WeekRate(date(2026, 11, 16), 140, 0, 0, 3, Interval(None), None),
    )
    return Rates(
        "model" if values[0] else None, tuple(Series(value, weeks, None) for value in values), 0, 0, None, None
    )


def test_bars_end_at_the_bounds_and_a_week_without_a_rate_has_no_point() -> None:
    figure = go.Figure(rate_chart(rates(None)))  # plotly refuses what it does not know
    (line,) = figure.data
    assert line.y == (0.28,)
    assert line.y[0] + line.error_y.array[0] == pytest.approx(0.375)
    assert line.y[0] - line.error_y.arrayminus[0] == pytest.approx(0.2)
    assert figure.layout.yaxis.range[1] >= 0.375
    assert figure.layout.xaxis.ticktext == ("W46<br>67", "W47<br>0")


def test_a_week_of_two_labels_is_pale_and_does_not_flatten_the_others() -> None:
    weeks = (
        WeekRate(date(2026, 11, 2), 90, 40, 9, 0, Interval(0.225, 0.12, 0.37), None),
        WeekRate(date(2026, 11, 9), 90, 2, 1, 0, Interval(0.5, 0.06, 0.94), None),
        WeekRate(date(2026, 11, 16), 90, 50, 10, 0, Interval(0.2, 0.11, 0.33), None),
    )
    figure = go.Figure(rate_chart(Rates(None, (Series(None, weeks, None),), 0, 0, None, None)))
    line, few = figure.data
    assert figure.layout.yaxis.range == (0, 0.4)
    assert (line.y, few.y) == ((0.225, 0.2), (0.4,))  # at the edge of the scale
    assert few.marker.symbol == ("arrow-up",)
    assert few.opacity < 1
    assert "50% (6–94%)" in few.customdata[0][1]
    assert "2 labels" in few.customdata[0][1]
    assert not few.showlegend
    only_few = go.Figure(rate_chart(Rates(None, (Series(None, weeks[1:2], None),), 0, 0, None, None)))
    assert only_few.layout.yaxis.range == (0, 1.0)
    assert only_few.data[0].y == (0.5,)


def test_names_are_text_and_lines_stand_apart() -> None:
    first, second = go.Figure(rate_chart(rates(NASTY, "other"))).data
    assert first.name == "&lt;b&gt;m&lt;/b&gt;%{y}"
    assert NASTY not in first.hovertemplate
    assert first.x != second.x
    assert first.marker.symbol != second.marker.symbol

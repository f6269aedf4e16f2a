"""Charts draw what they are given: every point, its threshold for a click, and no text of a trace."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from calibrate.stats.intervals.sweep_intervals import band, figures
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import FlagWhen, Interval
from calibrate.workflow.evidence.evidence import Evidence
from db.scores import Config, Row
from pages.components import charts


def curve(flag_when: FlagWhen = "below", n: int = 200) -> Sweep:
    rng = np.random.default_rng(3)
    labels = rng.random(n) < 0.2
    sign = 1 if flag_when == "above" else -1
    return sweep(labels, rng.normal(sign * labels, 1.0), flag_when=flag_when)


def data(n: int = 100) -> Evidence:
    golds = ["clean" if i % 4 else "hallucinated" for i in range(n)]
    nothing = (None, None, None)
    rows = tuple(
        Row(i, "<b>evil</b>", "00", gold, i / n, "scored", None, "all", *nothing) for i, gold in enumerate(golds)
    )
    return Evidence(Config(1, "token_overlap", "1", {}, ""), "below", None, rows)


def spec(figure: Any) -> dict[str, Any]:
    return dict(json.loads(figure.to_json()))


def mark(of: Sweep, threshold: float, kind: charts.Kind = "policy") -> charts.Mark:
    found = figures(of, threshold)
    return charts.Mark(kind, "Policy", threshold, found.precision, found.recall)


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_the_curve_carries_its_thresholds(flag_when: FlagWhen) -> None:
    of = curve(flag_when)
    figure = charts.precision_recall(of, band(of), [mark(of, float(of.thresholds[20]))])
    line = figure.data[1]
    np.testing.assert_array_equal(np.asarray(line.customdata)[:, 0], of.thresholds)
    np.testing.assert_array_equal(line.x, of.recall)
    marked = figure.data[2]
    assert (marked.x[0], marked.y[0]) == (of.recall[20], of.precision[20])
    assert figure.layout.xaxis.tickformat == figure.layout.yaxis.tickformat == ".0%"


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_the_false_positive_rate_is_the_share_of_clean_labels_flagged(flag_when: FlagWhen) -> None:
    """Counted by hand; between two scores the rate of the stricter one holds."""
    rng = np.random.default_rng(5)
    labels, scores = rng.random(80) < 0.3, rng.normal(size=80).round(1)
    of = sweep(labels, scores, flag_when=flag_when)
    figure = charts.false_positive_rate(of, band(of), 0.25, unit="share", span=(-3.0, 3.0))
    low, high, line, here = figure.data
    clean = scores[~labels]
    flagged = [np.mean(clean >= at if flag_when == "above" else clean <= at) for at in of.thresholds]
    np.testing.assert_allclose(line.y, flagged)
    np.testing.assert_array_equal(np.asarray(line.customdata)[:, 0], of.thresholds)
    assert line.line.shape == low.line.shape == high.line.shape == "hv"
    assert np.all((np.asarray(low.y) <= line.y) & (np.asarray(line.y) <= high.y))
    assert high.fill == "tonexty", "the band lies between the two before the curve"
    assert list(here.x) == [0.25, 0.25]
    assert figure.layout.yaxis.tickformat == ".0%"


def test_marks_lie_in_order_and_the_threshold_at_hand_is_in_the_legend() -> None:
    of = curve()
    kinds: list[charts.Kind] = ["elbow", "live", "policy"]
    marks = [charts.Mark(kind, kind, 0.0, Interval(0.5), Interval(0.5)) for kind in kinds]
    marks.append(charts.Mark("live", "unknown precision", 9.0, Interval(None), Interval(0.0)))
    names = [one.name for one in charts.precision_recall(of, band(of), marks).data[2:]]
    assert names == ["live", "policy", "elbow", "This threshold"]


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_a_click_on_a_bar_flags_the_whole_bar(flag_when: FlagWhen) -> None:
    histogram = data().histogram
    bars = charts.scores_by_label(histogram, curve(flag_when), unit="share", span=(0.0, 1.0)).data[0]
    edges = histogram.edges[:-1] if flag_when == "above" else histogram.edges[1:]
    np.testing.assert_array_equal(np.asarray(bars.customdata)[:, 0], edges)


def test_hallucinated_is_vermillion_and_clean_blue_on_no_background() -> None:
    figure = charts.scores_by_label(data().histogram, data().sweep, unit="share of words", span=(0.0, 1.0))
    colours = {trace.name: trace.marker.color for trace in figure.data[:2]}
    assert colours == {"clean": "#0072B2", "hallucinated": "#D55E00"}
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.xaxis.title.text == "Score: share of words"


def test_nothing_of_a_trace_reaches_a_chart() -> None:
    of = data()
    drawn = [
        charts.precision_recall(of.sweep, band(of.sweep), [mark(of.sweep, 0.5)]),
        charts.scores_by_label(of.histogram, of.sweep, unit="share", span=(0.0, 1.0)),
    ]
    assert "evil" not in json.dumps([spec(figure) for figure in drawn])


def test_a_million_scores_are_drawn_as_a_few_hundred_points() -> None:
    rng = np.random.default_rng(1)
    of = sweep(rng.random(200_000) < 0.1, rng.random(200_000)).thin(charts.MOST_POINTS)
    assert len(charts.precision_recall(of, band(of), []).to_json()) < 200_000


def test_one_distinct_score_is_drawn_too() -> None:
    of = sweep([True, False, False], [0.5, 0.5, 0.5])
    figure = charts.precision_recall(of, band(of), [mark(of, 0.5)])
    assert len(figure.data) == 4

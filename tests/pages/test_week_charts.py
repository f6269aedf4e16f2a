"""The charts of the home page draw what the release and its decisions say, and nothing else."""

from __future__ import annotations

import re
from datetime import date

import pytest

from calibrate.types import Guarantee, Interval
from pages.week.week_charts import KnownPrecision, flags_a_day, known_of, precision_known
from tests.thresholds.make import CERTIFIED, entry, release

SURE = Guarantee("certified", target=0.7, confidence=0.95, bound=0.72, labels=84, hallucinated=70)


def test_flags_are_stacked_by_tier_over_thirty_days() -> None:
    figure = flags_a_day(
        {"page": {"2026-11-20": 3}, "signal": {"2026-11-19": 2, "2026-11-20": 1}}, last=date(2026, 11, 20)
    )
    assert {bar.name: dict(zip(bar.x, bar.y, strict=True)) for bar in figure.data} == {
        "page": {"2026-11-20": 3},
        "signal": {"2026-11-19": 2, "2026-11-20": 1},
    }
    first, last = figure.layout.xaxis.range
    assert (last - first).days == 30
    assert last.date() == date(2026, 11, 20)


def test_a_precision_is_drawn_with_its_interval_its_labels_and_what_is_certified() -> None:
    rows = [
        KnownPrecision("rouge_l", Interval(0.8, 0.7, 0.88), 84, 20, SURE),
        KnownPrecision("bleu", Interval(0.5, None, None), 1_200, 61),
        KnownPrecision("x<b>", Interval(None), 3, 1),
    ]
    measured, certified = precision_known(rows).data
    assert [re.sub("<[^>]*>", " ", name).split(maxsplit=1) for name in measured.y] == [
        ["rouge_l", "84 labels, 20 of them hallucinated "],
        ["bleu", "1,200 labels, 61 of them hallucinated "],
    ], "what is unknown is not drawn"
    low = measured.x[0] - measured.error_x.arrayminus[0]
    high = measured.x[0] + measured.error_x.array[0]
    assert (low, high) == (pytest.approx(0.7), pytest.approx(0.88))
    assert (measured.error_x.array[1], measured.error_x.arrayminus[1]) == (0, 0)
    assert (list(certified.x), list(certified.y)) == ([0.7], [measured.y[0]])
    assert certified.name == "certified: at least"


def test_a_certificate_that_no_longer_holds_is_not_drawn() -> None:
    file = release({"a": entry(guarantee=CERTIFIED, tier="page"), "b": entry(guarantee=CERTIFIED)})
    assert [row.guarantee for row in known_of(file)] == [CERTIFIED, CERTIFIED]
    assert [row.guarantee for row in known_of(file, {"a"})] == [None, CERTIFIED]


def test_a_name_shows_as_it_is_written() -> None:
    (measured,) = precision_known([KnownPrecision("a<b>c</b> & d", Interval(0.5), 9, 4)]).data
    assert measured.y[0].startswith("a&lt;b&gt;c&lt;/b&gt; &amp; d<br>")

"""The chart of flags draws what the decisions say, and nothing else."""

from __future__ import annotations

from datetime import date

from pages.watch.flags_chart import flags_a_day


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

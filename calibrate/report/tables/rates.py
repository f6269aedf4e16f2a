"""The weekly rates as a table, for a terminal and a report."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.report.numbers import count, estimate, interval
from calibrate.report.sentences.watching.rates import name_of
from calibrate.sanitize import visible
from calibrate.workflow.week.rates import Rates

HEAD = ("week", "hallucinated", "labels", "undecided settled", "traces")


def rows(rates: Rates) -> list[Sequence[str]]:
    """One row a week, newest first; the value comes first where the rates are by something."""
    lines = [
        (
            *((visible(series.value, 40),) if rates.by else ()),
            name_of(week),
            estimate(week.rate.value, week.rate.low, week.rate.high),
            count(week.labels),
            interval(week.settled.low, week.settled.high) if week.settled else "",
            count(week.traces),
        )
        for series in rates.series
        for week in reversed(series.weeks)
    ]
    return [(*((visible(rates.by, 40),) if rates.by else ()), *HEAD), *lines]

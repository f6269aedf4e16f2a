"""The traffic on the home page: traces a day, by label."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import streamlit as st

from calibrate.report.numbers import day
from calibrate.types import LabelState, TraceFilter
from db import Store
from pages import shell
from pages.components import bars

MONTH = timedelta(days=30)
HEIGHT = 150


def show(store: Store, *, by_label: bool) -> None:
    """Thirty days up to the newest trace, by label state where it is to be seen; nothing where no trace carries a
    time."""
    counts = _counts(store, by_label=by_label)
    if counts is None:
        return
    newest, days = counts
    how = ", by label" if by_label else ""
    st.markdown(f"**Traces a day** :gray[:small[the 30 days up to {day(newest)}{how}]]")
    bars.days(days, height=HEIGHT, key="traffic")


@shell.cached_read(None, "traces", "labels")
def _counts(store: Store, *, by_label: bool) -> tuple[datetime, dict[str, dict[str, int]]] | None:
    """The time of the newest trace, and the traces of each day of the month before it, by label state or as one."""
    newest = store.traces.summary().last
    if newest is None:
        return None
    window = TraceFilter(since=newest - MONTH, undated=False)
    if not by_label:
        return newest, {"traces": store.traces.per_day(window)}
    states: tuple[LabelState, ...] = ("hallucinated", "clean", "unsure", "disputed", "unlabelled")
    counts = {str(state): store.traces.per_day(replace(window, label=state)) for state in states}
    return newest, {name: days for name, days in counts.items() if days}

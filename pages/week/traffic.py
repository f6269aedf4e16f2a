"""The traffic on the home page: traces a day, by label."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import streamlit as st

from calibrate.report.numbers import day
from calibrate.types import LabelState, TraceFilter
from db import Store
from pages.components import bars

MONTH = timedelta(days=30)
HEIGHT = 150


def show(store: Store, *, by_label: bool) -> None:
    """Thirty days up to the newest trace, by label state where it is to be seen; nothing where no trace carries a
    time."""
    newest = store.traces.summary().last
    if newest is None:
        return
    window = TraceFilter(since=newest - MONTH, undated=False)
    states: tuple[LabelState, ...] = ("hallucinated", "clean", "unsure", "disputed", "unlabelled")
    if by_label:
        counts = {str(state): store.traces.per_day(replace(window, label=state)) for state in states}
    else:
        counts = {"traces": store.traces.per_day(window)}
    how = ", by label" if by_label else ""
    st.markdown(f"**Traces a day** :gray[:small[the 30 days up to {day(newest)}{how}]]")
    bars.days({name: days for name, days in counts.items() if days}, height=HEIGHT, key="traffic")

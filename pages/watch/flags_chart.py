"""Flags a day by tier, as the releases decided them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta

import plotly.graph_objects as go
import streamlit as st

from calibrate.report.numbers import count, day
from calibrate.types import Tier
from db import Store
from pages.components import charts

MONTH = timedelta(days=30)
HEIGHT = 230
_TIERS: tuple[tuple[Tier, str], ...] = (("page", charts.VERMILLION), ("signal", "#E69F00"))


def show(store: Store, version: int) -> None:
    """Flags a day by tier, the 30 days up to the newest trace; where there are none, why."""
    newest = store.traces.summary().last
    if newest is None:
        st.caption("These traces carry no time, so their flags are on no day.")
        return
    counts = store.decisions.per_day(since=newest - MONTH)
    flags = sum(n for counts in counts.values() for n in counts.values())
    decided = sum(store.decisions.counts(version).values())
    if not flags:
        _no_flags(version, decided)
        return
    decisions = f"v{version} has decided {count(decided, 'trace')} so far" if decided else _unasked(version)
    st.caption(f"{count(flags, 'trace')} flagged in the 30 days up to {day(newest)}, by the trace's day; {decisions}")
    st.plotly_chart(flags_a_day(counts, last=newest.date()), key="flags-a-day", config=charts.CONFIG)


def _no_flags(version: int, decided: int) -> None:
    if decided:
        st.caption(f"v{version} decided {count(decided, 'trace')} and flagged none of the last 30 days.")
        return
    st.caption(f"{_unasked(version)}. Run on the server, this scores new traces as they come and decides:")
    st.code("python -m calibrate watch", language=None)


def _unasked(version: int) -> str:
    return f"v{version} has decided no trace of this store yet"


def flags_a_day(counts: Mapping[Tier, Mapping[str, int]], *, last: date) -> go.Figure:
    """Stacked bars of flagged traces, for the 30 days up to `last`."""
    data = [
        {
            "type": "bar",
            "x": list(counts[tier]),
            "y": list(counts[tier].values()),
            "name": tier,
            "marker": {"color": colour},
            "hovertemplate": f"%{{x|%a %d %b}}: %{{y:,}} {tier}<extra></extra>",
        }
        for tier, colour in _TIERS
        if counts.get(tier)
    ]
    half = timedelta(hours=12)
    span = [datetime.combine(last, datetime.min.time()) + move for move in (half - MONTH, half)]
    layout = {
        **charts.template(height=HEIGHT),
        "barmode": "stack",
        "bargap": 0.25,
        "showlegend": True,
        "xaxis": charts.axis("Day (UTC)", type="date", range=span, showgrid=False, tickformat="%d %b", nticks=8),
        # The margin grows with the ticks, so that they do not touch the title.
        "yaxis": charts.axis(
            "Flagged traces", standoff=16, automargin=True, rangemode="tozero", nticks=4, tickformat=",d"
        ),
    }
    return go.Figure({"data": data, "layout": layout})

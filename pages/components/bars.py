"""Bar charts of counts: a few shares in a row, and traffic per day. They compute nothing."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import streamlit as st

from calibrate.report.numbers import count
from pages.components.text import middle, plain, visible

VERMILLION, BLUE, GREY, QUIET = "#D55E00", "#0072B2", "#8A8F98", "rgba(138,143,152,.35)"
LABEL_COLOURS = {"hallucinated": VERMILLION, "clean": BLUE, "unsure": GREY, "disputed": "#CC79A7", "unlabelled": QUIET}
NONE = "(none)"


def days(series: Mapping[str, Mapping[str, int]], *, height: int = 190, key: str) -> None:
    """Traces a day, stacked by label state: {"clean": {"2026-11-20": 12, …}, …}."""
    figure = go.Figure()
    for name, counts in series.items():
        if counts:
            figure.add_bar(
                x=list(counts),
                y=list(counts.values()),
                name=name,
                marker_color=LABEL_COLOURS.get(name, GREY),
                hovertemplate=f"%{{x|%a %d %b}}: %{{y:,}} {name}<extra></extra>",
            )
    figure.update_layout(
        barmode="stack",
        bargap=0.25,
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={"type": "date", "showgrid": False, "tickformat": "%d %b", "nticks": 8, "fixedrange": True},
        yaxis={"nticks": 4, "gridcolor": "rgba(138,143,152,.2)", "zeroline": False, "fixedrange": True},
        showlegend=len(series) > 1,
    )
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})


def shares(title: str, counts: Mapping[str, int], *, most: int = 6) -> None:
    """The largest counts as thin horizontal bars with their numbers, the rest in one line."""
    rows = list(counts.items())
    if len(rows) > most:
        rows = [*rows[: most - 1], (f"{len(rows) - most + 1} more", sum(n for _, n in rows[most - 1 :]))]
    st.markdown(f"**{plain(title, 80)}**")
    st.html(_STYLE + "".join(_bar(name, n, rows) for name, n in rows))


_STYLE = """<style>
.ts-share {display: grid; grid-template-columns: minmax(0, 11rem) 1fr 4.5rem; gap: .75rem; align-items: center;
  font-size: .875rem; line-height: 1.7}
.ts-share > span:first-child {overflow: hidden; text-overflow: ellipsis; white-space: nowrap}
.ts-share > span:last-child {text-align: right; font-variant-numeric: tabular-nums}
.ts-share i {display: block; height: .5rem; border-radius: .25rem; min-width: 2px}
</style>"""


def _bar(name: str, n: int, rows: Sequence[tuple[str, int]]) -> str:
    """Escaped text only: names of models and attribute values come from traces."""
    width = round(100 * n / max(1, max(most for _, most in rows)), 1)
    colour = LABEL_COLOURS.get(name, GREY)
    whole = "not given" if name == NONE else visible(name, 200)
    label = html.escape(middle(whole, 20))
    return (
        f'<div class="ts-share"><span title="{html.escape(whole)}">{label}</span>'
        f'<span><i style="width:{width}%;background:{colour}"></i></span><span>{count(n)}</span></div>'
    )

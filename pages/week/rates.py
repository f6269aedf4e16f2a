"""How often the application hallucinated, week by week, on the home page."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from calibrate.report.rate_chart import ALL, rate_chart
from calibrate.report.sentences.watching import rates as sentences
from calibrate.workflow.upgrade.models_seen import offered
from calibrate.workflow.week.rates import Rates, weekly_rates
from db import Store
from pages import shell
from pages.components.charts import CONFIG
from pages.components.text import middle, plain, visible

HEIGHT = 165


def are_there(store: Store) -> bool:
    """Whether any week has labels that count."""
    return bool(_load(store, None).series)


def show(store: Store) -> None:
    """The rates as points with their intervals, by what a person chooses."""
    title, chooser = st.columns([2, 1], vertical_alignment="center")
    title.markdown("**Hallucinated, by week** :gray[:small[share of the traffic; bars are 95%, labels below]]")
    options = [ALL, *dict.fromkeys(("model", "operation", *offered(store)))]
    by = chooser.selectbox(
        "By", options, key="rates_by", label_visibility="collapsed", format_func=lambda name: visible(name, 40)
    )
    rates = _load(store, None if by == ALL else str(by))
    st.plotly_chart(
        go.Figure(rate_chart(rates, height=HEIGHT if rates.by is None else HEIGHT + 30)), config=CONFIG, key="rates"
    )
    if newest := sentences.comparison(rates):
        st.markdown(plain(newest))
    for series in rates.series:
        name = f"**{plain(middle(visible(series.value, 200), 40))}** " if rates.by else ""
        st.caption(f"{name}{plain(sentences.newest(series))}")
    for remark in sentences.remarks(rates):
        st.caption(plain(remark))


@shell.cached_read(None, "traces", "samples", "labels")
def _load(store: Store, by: str | None) -> Rates:
    return weekly_rates(store, by=by)

"""The Models page's parts: traffic by model or prompt over time, and how often each hallucinated."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from calibrate.report.numbers import count
from calibrate.report.sentences.labelling.labels import caution as caution_of
from calibrate.report.sentences.watching import models as sentences
from calibrate.report.tables.models import columns, name_of
from calibrate.workflow.upgrade import models_seen as step
from db import Store
from pages import shell
from pages.components import tables
from pages.components.charts import CONFIG, GREY, axis, share_axis, template
from pages.components.evidence_choice import SampleNames
from pages.components.text import charted, middle, plain, visible

MOST = 6  # values with a colour of their own
# Okabe and Ito's colours, but for those that mean hallucinated and clean.
COLOURS = ("#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#7A5195", "#B8860B")


def choose_by(store: Store) -> str:
    """The attribute that tells traces apart, the model by default; kept in the address."""
    names = step.offered(store)
    requested = st.query_params.get("by") or "model"
    by = st.selectbox(
        "By",
        names,
        index=names.index(requested) if requested in names else 0,
        format_func=lambda name: visible(name, 60),
    )
    st.query_params["by"] = by
    return str(by)


@shell.cached_read("Counting traces …", "traces", "samples", "labels", "releases")
def load(store: Store, by: str, sample: SampleNames) -> step.Registry:
    return step.registry(store, by=by, sample=sample)


def show_traffic(registry: step.Registry) -> None:
    """Each value's share of the traffic, by day or week; the oldest at the bottom."""
    dated = [value.name for value in reversed(registry.values) if value.name in registry.traffic]
    if not dated:
        st.caption("These traces carry no time, so there is no traffic to show.")
        return
    st.markdown(f"**Share of the traffic by {registry.per}**")
    st.plotly_chart(traffic(registry, dated), config=CONFIG, key="models_traffic")


def traffic(registry: step.Registry, names: Sequence[str]) -> go.Figure:
    """Stacked shares. Names come from traces and are shown as they are written."""
    most = sorted(names, key=lambda name: -sum(registry.traffic[name].values()))[:MOST]
    days = sorted({day for counts in registry.traffic.values() for day in counts})
    totals = [sum(counts.get(day, 0) for counts in registry.traffic.values()) for day in days]
    series = {name: [registry.traffic[name].get(day, 0) for day in days] for name in names if name in most}
    if rest := [name for name in names if name not in most]:
        series[f"{len(rest)} more"] = [sum(registry.traffic[name].get(day, 0) for name in rest) for day in days]
    figure = go.Figure()
    for place, (name, counts) in enumerate(series.items()):
        figure.add_bar(
            x=days,
            y=[n / total for n, total in zip(counts, totals, strict=True)],
            customdata=counts,
            name=named(name),
            marker={"color": COLOURS[place] if place < MOST else GREY, "line": {"width": 0}},
            hovertemplate="%{x|%d %b}: %{y:.0%}, %{customdata:,} traces, %{fullData.name}<extra></extra>",
        )
    figure.update_layout(
        **template(height=300),
        barmode="stack",
        bargap=0.12,
        xaxis=axis("", type="date", showgrid=False, tickformat="%d %b", nticks=10),
        yaxis=share_axis("", range=[0, 1]),
        showlegend=True,
    )
    return figure


def named(name: str) -> str:
    return charted(middle(name_of(name, 200), 32))


def show_table(registry: step.Registry) -> None:
    """Every value, newest first, with its labels and how often it hallucinated."""
    shown = columns(registry)
    st.dataframe(tables.frame(shown, registry.values), hide_index=True, column_config=tables.config(shown))
    basis = (
        f"from the labels of {plain(registry.sample, 60)}, weighted by its design"
        if registry.sample
        else "from all labels"
    )
    beyond = f" {count(registry.beyond, 'value')} with fewer traces are left out." if registry.beyond else ""
    st.caption(f"Hallucinated: {basis}; intervals are 95%.{beyond}")
    if caution := caution_of(registry.caution):
        st.caption(f":material/warning: {plain(caution)}.")


def show_step(registry: step.Registry) -> None:
    """Whether the newest hallucinates less than the one before it."""
    if isinstance(registry.step, step.NoStep):
        missing = sentences.no_step(registry.step)
        st.caption(f"{plain(missing[:1].upper() + missing[1:], 300)}.")
        return
    with st.container(border=True):
        st.markdown(f"**{plain(sentences.step(registry.step), 600)}**")
        st.caption("Each answered its own traffic: this compares what was, and is no experiment.")

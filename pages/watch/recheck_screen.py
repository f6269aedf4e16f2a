"""The Recheck page's parts: which detector, the evidence so far, and the flagged trace to label now."""

from __future__ import annotations

from math import log

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from calibrate.report.names import title_of
from calibrate.report.numbers import count, estimate, exact_share, interval, labelled, share
from calibrate.report.sentences.labelling import labels
from calibrate.report.sentences.watching import recheck as sentences
from calibrate.thresholds.model import DetectorEntry, Metrics, ThresholdsFile
from calibrate.types import ATTRIBUTE, TraceFilter
from calibrate.workflow.evidence.label_counts import label_counts
from calibrate.workflow.watching import recheck as step
from db import Store
from pages import shell
from pages.components.charts import BLUE, CONFIG, GREY, HERE, VERMILLION, axis, template
from pages.components.labelling import label_surface
from pages.components.text import middle, plain, visible

EVERY = "All traffic"


def choose(store: Store, file: ThresholdsFile) -> tuple[str, str | None, str | None]:
    """The detector, and the model and the segment whose traffic is rechecked; all are kept in the address."""
    names = [rule.detector for rule in file.rules]
    models = [name for name in store.traces.facet(TraceFilter(), "model") if name != "(none)"]
    left, right, last = st.columns([1, 1, 1])
    requested, model = st.query_params.get("detector"), st.query_params.get("model")
    rechecked = [name for name in names if any(file.version == each.version for each in store.rechecks.of(name))]
    first = requested if requested in names else next(iter(rechecked), names[0])
    with left:
        name = st.selectbox("Detector", names, index=names.index(first), format_func=title_of)
    segment = _choose_segment(file.detectors[name], last)
    st.query_params["detector"] = name
    if segment is None:
        st.query_params.pop("segment", None)
    else:
        st.query_params["segment"] = segment
    with right:
        segments = file.detectors[name].segments
        options = [EVERY] if segments is not None and segments.by == "model" else [EVERY, *models]
        chosen = st.selectbox(
            "Traffic of",
            options,
            index=options.index(model) if model in options else 0,
            format_func=lambda option: option if option == EVERY else middle(visible(option, 200), 48),
        )
    if chosen == EVERY:
        st.query_params.pop("model", None)
        return name, None, segment
    st.query_params["model"] = chosen
    return name, chosen, segment


def _choose_segment(entry: DetectorEntry, place: DeltaGenerator) -> str | None:
    """The segment to recheck, of a detector that has thresholds per segment; None of another."""
    if entry.segments is None:
        return None
    names, requested = sorted(entry.segments.thresholds), st.query_params.get("segment")
    by = entry.segments.by.removeprefix(ATTRIBUTE)
    return place.selectbox(
        f"Segment: {plain(by, 40)}",
        names,
        index=names.index(requested) if requested in names else 0,
        format_func=lambda name: middle(visible(name, 200), 48),
        help="It has a threshold for each segment. A recheck is of one.",
    )


def when_released(metrics: Metrics) -> str:
    """The precision of a release and its labels.

    A release knows how many labels it was measured on, not how many of them it flagged.
    """
    value = metrics.precision
    if value.value is None:
        return f"its precision was unknown, from {labelled(metrics.n, metrics.positives)}"
    precision = f"its precision was {estimate(value.value, value.low, value.high)}"
    return f"{precision}, measured on {labelled(metrics.n, metrics.positives)}, flagged or not"


def evidence(state: step.State) -> go.Figure:
    """Both e-values after every label; the first to reach the line decides."""
    n = np.arange(len(state.path.holds) + 1)
    needed = float(np.exp(state.standing.log_needed))
    series = (("it fell below", state.path.fell, VERMILLION, "solid"), ("it holds", state.path.holds, BLUE, "dash"))
    figure = go.Figure()
    for name, logs, colour, dash in series:
        figure.add_scatter(
            x=n,
            y=np.exp(np.clip(np.concatenate([[0.0], logs]), -12, 40)),
            mode="lines",
            line={"color": colour, "width": 2, "dash": dash},
            name=f"Evidence that {name}",
            hovertemplate=f"after %{{x}} labels: %{{y:.3~g}} to 1 that {name}<extra></extra>",
        )
    figure.add_hline(y=needed, line={"color": HERE, "width": 2, "dash": "dot"})
    figure.add_annotation(
        x=1, xref="paper", y=log(needed, 10), text=f"decided at {count(round(needed))} to 1", showarrow=False,
        xanchor="right", yanchor="bottom", font={"size": 12, "color": GREY},
    )  # fmt: skip
    figure.update_layout(
        **template(height=260),
        xaxis=axis("Labels", rangemode="tozero", range=[0, max(20, len(n) * 1.15)]),
        yaxis=axis("Evidence", type="log", tickvals=[0.01, 0.1, 1, 10, 100], range=[-2.2, 2.2]),
        showlegend=True,
    )
    return figure


def show_evidence(state: step.State) -> None:
    measured = state.standing.estimate
    with st.container(border=True):
        st.markdown(f"**{plain(sentences.verdict(state), 500)}**")
        left, right = st.columns([3, 1], vertical_alignment="center")
        with left:
            st.plotly_chart(evidence(state), config=CONFIG, key="recheck_evidence")
        with right:
            st.metric(f"Precision, target {exact_share(state.plan.target)}", share(measured.value))
            definite = state.hallucinated + state.clean
            st.caption(
                f"{interval(measured.low, measured.high)}, {count(definite, 'label')}" if definite else "no label yet"
            )
            st.caption(
                f"Flagged {plain(state.plan.limit)}, {sentences.period(state.plan)}; "
                f"{count(state.sample.size)} of {count(state.pool, 'flagged trace')} drawn"
            )
            if state.repeats:
                st.caption(f"{count(state.repeats)} share their sources with an earlier one")
            if few := sentences.few(state):
                st.caption(plain(few))
            counts = label_counts(shell.store(), state.sample)
            st.caption(plain(labels.labelled(counts)))
            if waiting := labels.waiting(counts):
                st.caption(f"{plain(waiting)}.")


def screen(store: Store, state: step.State) -> None:
    """The traces that wait for a label, until it is decided."""
    st.markdown(_status(state))
    if label_surface.show(store, label_surface.Rechecked(state.sample)) == "over":
        st.rerun()
    # Below, and closed: who judges a trace need not look at what it would prove.
    with st.expander("What the labels say so far"):
        show_evidence(state)


def _status(state: step.State) -> str:
    """ "Flagged traces of 8 to 14 Nov 2026, until it is decided · 12 more can be drawn"; the surface counts labels."""
    more = state.pool - state.sample.size
    ahead = f"{count(more)} more can be drawn" if more else "all of them are drawn"
    return f"**Flagged traces of {sentences.period(state.plan)}**, one by one, until it is decided · {ahead}"

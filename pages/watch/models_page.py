"""Models: which model and prompt answered when, and how often each hallucinated."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import listed
from calibrate.types import TraceFilter
from calibrate.workflow.upgrade import models_seen as step
from db import Store
from db.tables.filters import NONE
from pages import shell
from pages.components import evidence_choice, labels_line
from pages.components.text import middle, plain, visible
from pages.shell.bar import at_hand
from pages.watch import model_traffic


def what_next(registry: step.Registry) -> None:
    """The next step: a model that the release does not know may have drifted; one without labels can be sampled."""
    new = [value.name for value in registry.values if value.released is False and value.name != NONE]
    unlabelled = [value.name for value in registry.values if not value.labelled and value.name != NONE]
    with st.container(border=True):
        text, link = st.columns([4, 1.2], vertical_alignment="center")
        if new:
            names = plain(listed([middle(visible(name, 200), 32) for name in new]), 200)
            text.markdown(
                f":material/warning: v{registry.version} was made without **{names}**: its thresholds are not known to "
                "hold there."
            )
            with link:
                _go("Has it drifted?", "drift", ":material/show_chart:")
        elif unlabelled and registry.by == "model":
            names = plain(listed([middle(visible(name, 200), 32) for name in unlabelled]), 200)
            text.markdown(f"No answer of **{names}** is labelled yet.")
            with link:
                _go("Sample them", "sample", ":material/casino:")
        elif registry.version is not None:
            text.markdown(f"v{registry.version} was made on every model that answers now.")
            link.page_link(shell.page("drift"), label="Drift", icon=":material/show_chart:")
        else:
            text.markdown("Nothing is released yet. A release remembers the models it was made on.")
            link.page_link(shell.page("tune"), label="Choose thresholds", icon=":material/tune:")


def _go(text: str, key: str, icon: str) -> None:
    if st.button(text, type="primary", icon=icon):
        st.switch_page(shell.page(key))


def show(store: Store) -> None:
    with st.columns([1, 2])[0]:
        by = model_traffic.choose_by(store)
    sample = at_hand.labels(store)
    labels_line.show(store, sample)
    registry = model_traffic.load(store, by, evidence_choice.sample_names(sample))
    if by == "model":
        what_next(registry)
    model_traffic.show_step(registry)
    model_traffic.show_traffic(registry)
    model_traffic.show_table(registry)


with shell.page_frame(
    "Models", "Which model and which prompt answered when, and how often their answers were hallucinated."
) as opened:
    if opened.traces.count(TraceFilter(), limit=1):
        show(opened)
    else:
        with st.container(border=True):
            st.markdown(
                "**No traces yet.** Here you would see the models that answered, since when, and whether a new model "
                "or a stricter prompt hallucinates less."
            )
            st.page_link(shell.page("import"), label="Import traces", icon=":material/upload:")

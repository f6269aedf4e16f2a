"""Models: which model and prompt answered when, and how often each hallucinated."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import listed
from calibrate.types import TraceFilter
from calibrate.workflow.upgrade import models_seen as step
from db import Store
from pages.components import which_labels
from pages.components.text import middle, plain, visible
from pages.shell import workbench
from pages.shell.navigation import page
from pages.watch import watching


def what_next(found: step.Registry) -> None:
    """A model without labels can be sampled; one that the release does not know can be rechecked."""
    new = [one.name for one in found.values if one.released is False and one.name != watching.NONE]
    unlabelled = [one.name for one in found.values if not one.labels and one.name != watching.NONE]
    with st.container(border=True):
        text, link = st.columns([4, 1.2], vertical_alignment="center")
        if new:
            names = plain(listed([middle(visible(name, 200), 32) for name in new]), 200)
            text.markdown(
                f":material/warning: v{found.version} was made without **{names}**: its thresholds are not known to "
                "hold there."
            )
            with link:
                _go("Has it drifted?", "drift", ":material/show_chart:")
        elif unlabelled and found.by == "model":
            names = plain(listed([middle(visible(name, 200), 32) for name in unlabelled]), 200)
            text.markdown(f"No answer of **{names}** is labelled yet.")
            with link:
                _go("Sample them", "sample", ":material/casino:")
        elif found.version is not None:
            text.markdown(f"v{found.version} was made on every model that answers now.")
            link.page_link(page("drift"), label="Drift", icon=":material/show_chart:")
        else:
            text.markdown("Nothing is released yet. A release remembers the models it was made on.")
            link.page_link(page("tune"), label="Choose thresholds", icon=":material/tune:")


def _go(text: str, key: str, icon: str) -> None:
    if st.button(text, type="primary", icon=icon):
        st.switch_page(page(key))


def show(store: Store) -> None:
    left, middle, _ = st.columns([1, 1, 1])
    with left:
        by = watching.choose_by(store)
    with middle:
        sample = which_labels.choose_labels(store, merge=True)
    found = watching.registry(store, by, which_labels.asked(sample))
    if by == "model":
        what_next(found)
    watching.show_step(found)
    watching.show_traffic(found)
    watching.show_table(found)


with workbench.page(
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
            st.page_link(page("import"), label="Import traces", icon=":material/upload:")

"""Ensemble: several detectors as one decision, and whether that beats the best of them alone."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import BadInput
from calibrate.workflow.detection import configurations
from calibrate.workflow.tuning.ensemble import COVERED, DEFAULT
from pages.components import which_labels
from pages.components.text import plain
from pages.shell import workbench
from pages.shell.navigation import page
from pages.thresholds import ensembles

with workbench.page(
    "Ensemble", "Let several detectors decide together, and see whether that finds more than the best of them alone."
) as store:
    runs = configurations.configs_by_detector(store)
    if len(runs) < 2:
        with st.container(border=True):
            st.markdown(
                "**An ensemble needs the scores of two detectors.** Here you would see what they find together at one "
                "alert budget."
            )
            st.page_link(page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    sample = which_labels.choose_labels(store)
    name = sample.name if sample else None
    sweeps = {
        one: which_labels.labelled(store, configs[-1], name).sweep
        for one, configs in which_labels.best_first(store, runs, name).items()
    }
    offered = [one for one, sweep in sweeps.items() if sweep.scored]
    default = [one for one in offered if (sweeps[one].coverage or 0.0) >= COVERED][:DEFAULT]
    choice = ensembles.choose(store, offered, default)
    try:
        report = ensembles.report(store, choice, name)
    except BadInput as error:
        with st.container(border=True):
            why = str(error)
            st.markdown(f"**No ensemble to show yet.** {plain(why[:1].upper() + why[1:])}.")
            if len(choice.names) > 1:
                st.page_link(page("label"), label="Label traces", icon=":material/check_box:")
        st.stop()
    ensembles.show_sentence(report)
    ensembles.show_figures(report)
    ensembles.offer_save(store, report)
    ensembles.show_charts(report)
    ensembles.show_frontier(report)
    left, right = st.columns(2, gap="medium")
    with left:
        ensembles.show_joint(report)
    with right:
        ensembles.show_tiers(report)
    ensembles.show_saved(store)

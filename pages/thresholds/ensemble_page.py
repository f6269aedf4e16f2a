"""Combine: several detectors as one decision, and whether that beats the best of them alone."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import BadInput
from pages import shell
from pages.components import evidence_choice, labels_line
from pages.components.text import plain
from pages.shell.bar import at_hand
from pages.thresholds import ensemble_report
from pages.thresholds.learn import panel as learn_panel

with shell.page_frame(
    "Combine", "Let several detectors decide together, and see whether that finds more than the best of them alone."
) as store:
    runs = evidence_choice.configs_by_detector(store)
    if len(runs) < 2:
        with st.container(border=True):
            st.markdown(
                "**An ensemble needs the scores of two detectors.** Here you would see what they find together at one "
                "alert budget."
            )
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    sample = at_hand.labels(store)
    name = sample.name if sample else None
    sweeps = {
        detector: evidence_choice.evidence_of(store, configs[-1], name).sweep
        for detector, configs in evidence_choice.best_first(store, runs, name).items()
    }
    prevalence = next((sweep.prevalence for sweep in sweeps.values() if sweep.prevalence is not None), None)
    verdict = st.container()  # the answer comes first; what it is about is chosen below it
    choice = ensemble_report.choose(store, [detector for detector, sweep in sweeps.items() if sweep.scored], prevalence)
    labels_line.show(store, sample)
    try:
        report = ensemble_report.build_report(store, choice, name)
    except BadInput as error:
        with verdict, st.container(border=True):
            why = str(error)
            st.markdown(f"**No ensemble to show yet.** {plain(why[:1].upper() + why[1:])}.")
            if len(choice.names) != 1:
                st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")
        st.stop()
    with verdict:
        ensemble_report.answer(store, report)
    ensemble_report.show_details(store, report)
    learn_panel.show(store, name)

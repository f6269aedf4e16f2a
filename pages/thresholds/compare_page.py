"""Compare: several curves in one chart, and whether they differ by more than chance."""

from __future__ import annotations

import streamlit as st

from calibrate.workflow.evidence import basis
from pages import shell
from pages.components import evidence_choice
from pages.shell.bar import at_hand
from pages.thresholds import comparison

with shell.page_frame(
    "Compare", "Put curves side by side: detectors, settings of one, the models behind the answers, or weeks."
) as store:
    runs = evidence_choice.configs_by_detector(store)
    if not runs:
        with st.container(border=True):
            st.markdown("**No detector has scored anything yet.** Here you would see their curves side by side.")
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    left, right = st.columns([4, 3])
    with left:
        kind = comparison.choose_kind()
    sample = None if kind == comparison.WEEKS else at_hand.labels(store)
    name = sample.name if sample else None
    ranked = evidence_choice.best_first(store, runs, name)
    selection = comparison.choose_series(store, kind, ranked, name, right)
    if selection is None:
        st.stop()
    contrast = comparison.contrast(store, selection)
    comparison.show_labels(store, selection)
    comparison.show_sentences(contrast, selection, basis.choose_basis(store, name))
    comparison.show_curves(contrast)
    comparison.show_table(contrast)

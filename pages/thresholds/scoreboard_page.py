"""Scoreboard: which detector is best, by how much, and at what cost; what a score of each says in percent."""

from __future__ import annotations

import streamlit as st

from pages import shell
from pages.components import evidence_choice, labels_line, unknown_models
from pages.shell.bar import at_hand
from pages.thresholds import reliability, scoreboard

with shell.page_frame(
    "Scoreboard", "Every detector on the same labels, beside the baselines it must beat, and what each costs."
) as store:
    if not evidence_choice.configs_by_detector(store):
        with st.container(border=True):
            st.markdown(
                "**No detector has scored anything yet.** Here you would see them side by side: how well each tells "
                "hallucinated from clean, how sure that is, what it costs."
            )
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    unknown_models.show(store)
    sample = at_hand.labels(store)
    labels_line.show(store, sample)
    name = sample.name if sample else None
    board = scoreboard.load(store, name)
    if not board.n:
        with st.container(border=True):
            st.markdown("**No labels yet.** A scoreboard needs traces labelled hallucinated and clean.")
            st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")
        st.stop()
    scoreboard.show_leaders(board)
    chosen = scoreboard.choose(board)
    scoreboard.show_silent(board)
    if chosen is not None:
        reliability.show(store, chosen, name)

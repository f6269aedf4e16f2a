"""Compare: several curves in one chart, and whether they differ by more than chance."""

from __future__ import annotations

import streamlit as st

from calibrate.workflow.detection import configurations
from pages.components import which_labels
from pages.shell import workbench
from pages.shell.navigation import page
from pages.thresholds import comparing

with workbench.page(
    "Compare", "Put curves side by side: detectors, settings of one, the models behind the answers, or weeks."
) as found:
    runs = configurations.configs_by_detector(found)
    if not runs:
        with st.container(border=True):
            st.markdown("**No detector has scored anything yet.** Here you would see their curves side by side.")
            st.page_link(page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    left, middle, right = st.columns([4, 3, 3])
    with left:
        kind = comparing.choose_kind()
    with middle:
        sample = None if kind == comparing.WEEKS else which_labels.choose_labels(found)
    name = sample.name if sample else None
    ranked = which_labels.best_first(found, runs, name)
    asked = comparing.choose_series(found, kind, ranked, name, right)
    if asked is None:
        st.stop()
    contrast = comparing.contrast(found, asked)
    comparing.show_sentences(contrast, asked)
    comparing.show_curves(contrast)
    comparing.show_table(contrast)

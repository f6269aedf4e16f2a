"""Label: one trace a screen, one key a verdict, the next trace at once."""

from __future__ import annotations

import streamlit as st

from pages import shell
from pages.components.labelling import label_surface
from pages.shell.bar import at_hand


def main() -> None:
    with shell.guarded():
        store = shell.store()
        if not store.samples.list():
            show_no_sample()
            return
        sample = at_hand.drawn(store)
        assert sample is not None
        if label_surface.show(store, sample, gap_first="gap" in st.query_params) == "detect":
            st.switch_page(shell.page("detect"))


def show_no_sample() -> None:
    with st.container(border=True):
        st.header("No sample to label yet", anchor=False)
        st.write(
            "A sample is a set of traces drawn at random, so that what you learn about it holds for your traffic. "
            "Draw one, and its traces come here one at a time."
        )
        if shell.may_open("sample") and st.button("Draw a sample", type="primary", icon=":material/casino:"):
            st.switch_page(shell.page("sample"))


main()

"""Label: one trace a screen, one key a verdict, the next trace at once."""

from __future__ import annotations

import streamlit as st

from pages import shell
from pages.components import evidence_choice
from pages.components.labelling import label_surface
from pages.components.text import plain


def main() -> None:
    with shell.guarded():
        store = shell.store()
        if not store.samples.list():
            show_no_sample()
            return
        head = st.container(horizontal=True, horizontal_alignment="right", key="label-head")
        with head.popover(plain(shell.user(), 30), icon=":material/person:", type="tertiary"):
            sample = evidence_choice.choose_sample(store)
            if shell.may_type_a_name():
                st.text_input("Your name", value=shell.user(), key="label_name", max_chars=100, on_change=rename)
            st.caption(f"Your verdicts are kept under {plain(shell.person().shown, 60)}.")
        assert sample is not None
        if label_surface.show(store, sample, gap_first="gap" in st.query_params) == "detect":
            st.switch_page(shell.page("detect"))


def show_no_sample() -> None:
    with st.container(border=True):
        st.subheader("No sample to label yet", anchor=False)
        st.write(
            "A sample is a set of traces drawn at random, so that what you learn about it holds for your traffic. "
            "Draw one, and its traces come here one at a time."
        )
        if shell.may_open("sample") and st.button("Draw a sample", type="primary", icon=":material/casino:"):
            st.switch_page(shell.page("sample"))


def rename() -> None:
    name = str(st.session_state["label_name"]).strip()
    if name and shell.may_type_a_name():
        st.session_state["user"] = st.query_params["user"] = name


main()

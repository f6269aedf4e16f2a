"""What the Watch pages show as long as there is no release to watch."""

from __future__ import annotations

import streamlit as st

from pages import shell


def show(then: str) -> None:
    """`then`: a sentence of ours on what the page does once there is one."""
    with st.container(border=True):
        st.markdown(f"**Nothing is released yet.** {then}")
        st.page_link(shell.page("tune"), label="Choose thresholds", icon=":material/tune:")

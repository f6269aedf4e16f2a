"""What the Watch pages show until something is released."""

from __future__ import annotations

import streamlit as st

from pages import shell


def show(then: str) -> None:
    """`then` says what the page will do once there is a release."""
    with st.container(border=True):
        st.markdown(f"**Nothing is released yet.** {then}")
        st.page_link(shell.page("tune"), label="Choose thresholds", icon=":material/tune:")

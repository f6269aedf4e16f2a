"""The home page of an empty store: what this is, and two ways to start."""

from __future__ import annotations

import streamlit as st

from calibrate.workflow.demo import story
from pages import shell


def fill() -> None:
    """Fill the store with the demo. A second press finds a store that is not empty, and changes nothing."""
    with shell.errors_kept("home_problem"), st.spinner("Nine weeks go by …"):
        story.fill(shell.store(), shell.now())


def begin() -> None:
    """What Touchstone is, and two ways to start."""
    st.markdown(
        "Touchstone finds out, from traces you label, where the threshold of each hallucination detector should be, "
        "and how sure you may be of it."
    )
    shell.show_kept_error("home_problem")
    own, sample = st.columns(2, gap="medium")
    with own, st.container(border=True, height="stretch"):
        st.markdown("**Start with your traces**")
        st.caption("Questions and answers your app has logged, as JSON lines, CSV or Parquet. They stay in this store.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
    with sample, st.container(border=True, height="stretch"):
        st.markdown("**Look around first**")
        st.caption("A made-up shop's assistant: nine weeks of traces, three labellers, two releases, and a week to do.")
        st.button("Open the demo", icon=":material/science:", on_click=fill)

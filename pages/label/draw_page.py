"""Draw: how long there is, which traces, who labels them. Then the sample, in one press."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.types import TraceFilter
from pages import shell
from pages.components.draw_job import show_progress
from pages.components.text import plain
from pages.label import sample_form
from pages.label.sample_at_hand import show_at_hand
from pages.label.sample_plan import show_samples

with shell.page_frame("Draw", "Draw the traces to label, each with a known chance, so that the figures hold.") as store:
    job = sample_form.going()
    if job is None:
        sample_form.finish()
    samples = store.samples.list()
    fresh = next((sample for sample in samples if sample.name == st.session_state.get("draw_done")), None)
    if not store.traces.count(TraceFilter(), limit=1):
        st.markdown("There are no traces to draw from yet.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
    else:
        if job is not None:
            show_progress(job)
        if st.session_state.pop("draw_stopped", False):
            st.info("Stopped. Nothing was drawn.")
        if fresh:
            with st.container(
                border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
            ):
                st.markdown(
                    f"**{plain(fresh.name)}** is drawn: {count(fresh.size)} of {count(fresh.pool)} traces.",
                    width="content",
                )
                if st.button("Label them", type="primary", icon=":material/arrow_forward:", icon_position="right"):
                    st.switch_page(shell.page("label"))
        sample_form.form(store, primary=fresh is None, busy=job is not None)
        if samples:
            with st.expander(f"Samples drawn so far ({count(len(samples))})", icon=":material/list:"):
                show_samples(store, samples, shell.now())
                show_at_hand(store)

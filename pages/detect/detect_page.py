"""Detect: choose detectors and traces, let a worker score them, see what came of it."""

from __future__ import annotations

import streamlit as st

from calibrate.types import TraceFilter
from calibrate.workflow.detection.detectors import put_in_place
from calibrate.workflow.detection.outcomes import failures
from pages import shell
from pages.components.run_view import is_going, show_history, show_problem, show_progress, show_result
from pages.detect import run_form

with shell.page_frame(
    "Detect", "Let each detector score the traces. A threshold comes later, from the labels."
) as store:
    put_in_place(store)
    show_problem()
    runs = store.runs.recent()
    newest = runs[0] if runs else None
    if not store.traces.count(TraceFilter(), limit=1):
        st.markdown("There are no traces to score yet.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
    elif newest and is_going(newest):
        show_progress(store, newest.id)
    else:
        done = run_form.is_current(store, newest)
        if newest:
            show_result(store, newest)
        broken = bool(newest and failures(newest))
        if done and st.button(
            "Tune thresholds",
            type="secondary" if broken else "primary",
            icon=":material/arrow_forward:",
            icon_position="right",
        ):
            st.switch_page(shell.page("tune"))
        if done:
            with st.expander("Run again, or with other detectors, settings or traces", icon=":material/replay:"):
                run_form.form(store, again=True)
        else:
            run_form.form(store, again=False)
    if len(runs) > 1:
        st.space("small")
        st.markdown("**Runs before**")
        show_history(runs[1:], shell.now())

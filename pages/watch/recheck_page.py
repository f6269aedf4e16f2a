"""Recheck: flagged traces one by one, until it is known whether a released threshold still holds."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.watching import recheck as step
from db import Store
from pages import shell
from pages.components import unknown_models
from pages.watch import recheck_screen, recheck_start, unreleased


def decided(state: step.State) -> None:
    """What to do once it is decided."""
    with st.container(horizontal=True):
        fell = state.decision == "fell below"
        key, text, icon = (
            ("recalibrate", "Recalibrate", ":material/autorenew:")
            if fell
            else ("watch", "Back to Watch", ":material/arrow_back:")
        )
        if st.button(text, type="primary", icon=icon):
            st.switch_page(shell.page(key))
    st.caption(f"Decided with {count(state.counted)} labels. It is kept: labels that come later do not undo it.")


def show(store: Store) -> None:
    file = read_release(store.releases.list()[0])
    detector, model, segment = recheck_screen.choose(store, file)
    recheck = step.newest(store, detector, model=model, segment=segment)
    if recheck is None:
        shell.show_kept_error("recheck_problem")
        unknown_models.show(store)
        recheck_start.offer(store, file.detectors[detector], detector, model, segment, again=False)
        return
    state = step.state(store, recheck, now=shell.now())
    if state.left and not state.done:
        recheck_screen.screen(store, state)
        return
    recheck_screen.show_evidence(state)
    shell.show_kept_error("recheck_problem")
    if state.done:
        decided(state)
        recheck_start.offer(store, file.detectors[detector], detector, model, segment, again=True)
    elif state.exhausted:
        st.markdown("Every flagged trace of that period is labelled, and they do not decide it.")
        recheck_start.offer(store, file.detectors[detector], detector, model, segment, again=True)
    else:
        st.button(
            "Draw more flagged traces", type="primary", icon=":material/casino:", on_click=recheck_start.more,
            args=(store, detector, model, segment),
        )  # fmt: skip


with shell.page_frame(
    "Recheck", "Does a released threshold still hold? Label what it flags until that is known."
) as opened:
    if opened.releases.list():
        show(opened)
    else:
        unreleased.show(
            "Once thresholds are live, a few dozen labels of what they flag tell here whether they still do what they "
            "promised."
        )

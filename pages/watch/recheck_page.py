"""Recheck: flagged traces one by one, until it is known whether a released threshold still holds."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.stats.choosing.policies import parse
from calibrate.thresholds.model import DetectorEntry
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.watching import recheck as step
from db import Store
from pages import shell
from pages.components import unknown_models
from pages.components.text import plain
from pages.watch import recheck_screen, unreleased


def begin(store: Store, detector: str, model: str | None) -> None:
    """Pressed twice, the second finds the recheck under way."""
    with recheck_screen.errors_shown_above():
        target = st.session_state.get("recheck_target")
        step.begin(
            store, detector, model=model, target=None if target is None else target / 100,
            by=shell.user(), now=shell.now(),
        )  # fmt: skip


def more(store: Store, detector: str, model: str | None) -> None:
    with recheck_screen.errors_shown_above():
        if recheck := step.open_one(store, detector, model=model):
            step.more(store, recheck, now=shell.now())


def offer(store: Store, entry: DetectorEntry, detector: str, model: str | None, *, again: bool) -> None:
    """The start: what it will hold the precision against, and what it costs."""
    policy = parse(entry.policy)
    promised = entry.guarantee.target if entry.guarantee else policy.value if policy.kind == "precision" else None
    if not again:
        st.markdown(
            "You label what it flags, one trace at a time. After each label this page says whether it is decided: you "
            "may look and stop whenever you like, and it is wrong in at most 5 of 100 rechecks."
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = st.number_input(
            "Precision to hold, %", min_value=5, max_value=95, step=5, width=170,
            value=None if promised is None else min(95, max(5, round(100 * promised))), key="recheck_target",
            placeholder="say which",
        )  # fmt: skip
        st.button(
            f"Recheck {plain(detector)} again" if again else f"Recheck {plain(detector)}",
            type="secondary" if again else "primary",
            icon=":material/fact_check:",
            disabled=target is None,
            on_click=begin,
            args=(store, detector, model),
        )
    if promised is None:
        st.caption(
            f"No precision was promised for it. When it was released, {recheck_screen.when_released(entry.metrics)}."
        )


def decided(state: step.State) -> None:
    """What to do now that it is known."""
    with st.container(horizontal=True):
        fell = state.decision == "fell below"
        key, text, icon = (
            ("recalibrate", "Recalibrate", ":material/autorenew:")
            if fell
            else ("drift", "Back to drift", ":material/show_chart:")
        )
        if st.button(text, type="primary", icon=icon):
            st.switch_page(shell.page(key))
    st.caption(f"Decided with {count(state.counted)} labels. It is kept: labels that come later do not undo it.")


def show(store: Store) -> None:
    file = read_release(store.releases.list()[0])
    detector, model = recheck_screen.choose(store, file)
    recheck = step.newest(store, detector, model=model)
    if recheck is None:
        if error := st.session_state.pop(recheck_screen.PROBLEM, None):
            shell.show_error(error)
        unknown_models.show(store)
        offer(store, file.detectors[detector], detector, model, again=False)
        return
    state = step.state(store, recheck, now=shell.now())
    if state.left and not state.done:
        recheck_screen.screen(store, recheck)
        return
    recheck_screen.show_evidence(state)
    if error := st.session_state.pop(recheck_screen.PROBLEM, None):
        shell.show_error(error)
    if state.done:
        decided(state)
        offer(store, file.detectors[detector], detector, model, again=True)
    elif state.exhausted:
        st.markdown("Every flagged trace there was is labelled, and they do not decide it. New traffic will.")
        offer(store, file.detectors[detector], detector, model, again=True)
    else:
        st.button(
            "Draw more flagged traces", type="primary", icon=":material/casino:", on_click=more,
            args=(store, detector, model),
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

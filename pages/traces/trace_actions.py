"""What can be done with the open trace: label it now, or put it on a list that somebody picks by hand."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from calibrate.types import Label, Verdict
from calibrate.workflow.sampling import hand_picked
from db import Store
from pages import shell
from pages.components.text import plain

DONE = "trace_done"  # in the session: what was done last, to be said once
USUAL = "Hand-picked"
ICONS = {"clean": ":material/check:", "hallucinated": ":material/close:", "unsure": ":material/question_mark:"}


def show(store: Store, pk: int, trace_id: str) -> None:
    """The two buttons."""
    if shell.may_open("label"):
        with st.popover("Label now", icon=":material/check_box:", type="primary"):
            _label_now(pk, trace_id)
    if shell.may_open("sample"):
        with st.popover("Add to sample", icon=":material/playlist_add:"):
            _add(store, pk)


def show_outcome() -> None:
    """What was done last, once, or why it was not."""
    shell.show_kept_error("trace_problem")
    if done := st.session_state.pop(DONE, None):
        st.toast(done)


def _label_now(pk: int, trace_id: str) -> None:
    note = st.text_input("Note", key=f"label-note-{pk}", max_chars=2000, placeholder="optional")
    with st.container(horizontal=True, gap="small"):
        for verdict in get_args(Verdict):
            st.button(
                verdict.capitalize(), key=f"label-{verdict}-{pk}", icon=ICONS[verdict],
                on_click=_give, args=(pk, trace_id, verdict, note),
            )  # fmt: skip
    st.caption("You see scores and the model here, so this label is outside any sample: it stands for no traffic.")


def _give(pk: int, trace_id: str, verdict: Verdict, note: str) -> None:
    with shell.errors_kept("trace_problem"):
        label = Label(trace_id, shell.user(), verdict, note=note.strip() or None)
        shell.store().labels.add(pk, label, sample_id=None, now=shell.now())
        st.session_state[DONE] = f"Labelled {verdict}, outside any sample"


def _add(store: Store, pk: int) -> None:
    names = [sample.name for sample in hand_picked.hand_picked(store)] or [USUAL]
    name = st.selectbox("Hand-picked sample", names, key="pick-name", accept_new_options=True)
    st.button("Add", key=f"pick-{pk}", icon=":material/add:", on_click=_pick, args=(pk, name))
    st.caption("For reading, labelling and discussing. It never counts as random, so no figure of the traffic uses it.")


def _pick(pk: int, name: str | None) -> None:
    with shell.errors_kept("trace_problem"):
        sample, is_new = hand_picked.pick(shell.store(), pk, name or "", now=shell.now())
        words = "Added to" if is_new else "Already in"
        st.session_state[DONE] = f"{words} {plain(sample.name, 80)}"

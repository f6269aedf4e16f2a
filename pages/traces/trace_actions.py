"""What can be done with the open trace: label it now, or put it on a list that somebody picks by hand."""

from __future__ import annotations

import streamlit as st

from calibrate.workflow.sampling import hand_picked
from db import Store
from pages import shell
from pages.components.labelling import label_surface
from pages.components.text import plain

DONE = "trace_done"  # in the session: what was done last, to be said once
USUAL = "Hand-picked"
LABELLING = "labelling"  # in the address: the id of the trace that is being labelled


def show(store: Store, pk: int, trace_id: str) -> None:
    """The two buttons."""
    if shell.may_open("label"):
        st.button("Label now", icon=":material/check_box:", type="primary", on_click=_begin, args=(trace_id,))
    if shell.may_open("sample"):
        with st.popover("Add to sample", icon=":material/playlist_add:"):
            _add(store, pk)


def show_outcome() -> None:
    """What was done last, once, or why it was not."""
    shell.show_kept_error("trace_problem")
    if done := st.session_state.pop(DONE, None):
        st.toast(done)


def is_labelling(trace_id: str) -> bool:
    """Whether the person is labelling the open trace; the address says so."""
    return st.query_params.get(LABELLING) == trace_id and shell.may_open("label")


def label_now(store: Store, pk: int) -> None:
    """The open trace on the labelling surface. Labels given here are outside any sample."""
    began = st.session_state.setdefault(f"label-now-{pk}", _newest_label(store, pk))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Outside any sample: the label stands for no traffic.", width="stretch")
        st.button("Close", icon=":material/close:", type="tertiary", on_click=_end, args=(pk,))
    if label_surface.show(store, label_surface.Chosen((pk,), began)) == "over":
        _end(pk)
        st.rerun(scope="fragment")


def _newest_label(store: Store, pk: int) -> int:
    standing = store.answers.standing([pk], shell.user()).get(pk)
    return standing.key if standing else 0


def _begin(trace_id: str) -> None:
    st.query_params[LABELLING] = trace_id


def _end(pk: int) -> None:
    st.query_params.pop(LABELLING, None)
    st.session_state.pop(f"label-now-{pk}", None)


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

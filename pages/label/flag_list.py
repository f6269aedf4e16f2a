"""Flags that labellers raised for the lead: what each asks, the trace, and a button that settles it."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import ago, count
from calibrate.workflow.labelling import flags
from db import Store
from pages import shell
from pages.components.text import plain

MOST = 20
_PROBLEM = "flags_problem"


def show(store: Store) -> None:
    """The open flags, the oldest first; nothing where there is none."""
    waiting = flags.open_flags(store)
    shell.show_kept_error(_PROBLEM)
    if not waiting:
        return
    st.markdown(f"**{count(len(waiting), 'flag')} for the lead.** A flag says nothing of the verdict.")
    for flag in waiting[:MOST]:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            words = f"“{plain(flag.note, 500)}”" if flag.note else "asks you to look"
            st.markdown(f"**{plain(flag.labeller, 40)}** {words} :gray[{ago(flag.raised_at, shell.now())}]")
            st.page_link(
                shell.page("traces"),
                label=plain(flag.trace_id, 60),
                icon=":material/article:",
                query_params={"trace": flag.trace_id},
            )
            st.button(
                "Settled",
                key=f"settle-flag-{flag.trace_pk}-{flag.labeller}",
                icon=":material/check:",
                on_click=_settle,
                args=(store, flag.trace_pk, flag.labeller),
            )
    if len(waiting) > MOST:
        st.caption(f"and {count(len(waiting) - MOST)} more")


def _settle(store: Store, pk: int, labeller: str) -> None:
    with shell.errors_kept(_PROBLEM):
        shell.require("calibrator")
        flags.settle(store, pk, labeller, by=shell.user(), now=shell.now())

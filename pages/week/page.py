"""This week: where the loop stands, and the one thing to do next."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from calibrate.report.sentences.labelling import labels
from calibrate.stats.sampling import designs
from calibrate.workflow.week.week import week
from db import Store
from pages import shell
from pages.components import live_rows, proposals, unknown_models
from pages.components.text import plain
from pages.week import first_steps, rates, traffic
from pages.week.week_steps import show_next, show_steps

BLIND = "What labels and thresholds say is left out here: you label, and labels should lean towards nothing."


def show_proposals(store: Store, now: datetime) -> None:
    """Releases that wait for a second person."""
    for proposal in store.proposals.list(waiting=True):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/how_to_reg: {proposals.heading(store, proposal, now)}", width="stretch")
            if shell.may_open("release"):
                st.page_link(shell.page("release"), label="Look at it", icon=":material/verified:")


name = designs.default_name(shell.now())
with shell.page_frame(f"Week {name}", "Where the loop stands, and the one thing to do next.") as store:
    now = shell.now()
    state = week(
        store, name=name, labeller=shell.user(), now=now, live=live_rows.standing(store),
        unknown=unknown_models.of_live(store),
    )  # fmt: skip
    if not state.traces:
        first_steps.begin()
    else:
        show_next(state)
        show_steps(state, now)
        show_proposals(store, now)
        blind = shell.person().is_blind
        if state.release and not blind:
            live_rows.show_release(state.release, now)
            live_rows.show_lines(state.live.thresholds, now)
        st.caption(plain(BLIND if blind else f"{labels.facts(state.at_hand)}."))
        if blind or not rates.are_there(store):
            traffic.show(store, by_label=not blind)
        else:
            left, right = st.columns(2, gap="medium")
            with left:
                rates.show(store)
            with right:
                traffic.show(store, by_label=True)

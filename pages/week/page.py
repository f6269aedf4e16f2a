"""This week: where the loop stands, and the one thing to do next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from calibrate.report.sentences import recheck
from calibrate.stats.sampling import designs
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.states import Judged
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.watching.recheck import fallen
from calibrate.workflow.week.week import judge_live, week
from db import Store
from db.releases import Release
from pages import shell
from pages.components import labels_line, proposals
from pages.components.text import plain
from pages.week import first_steps, week_charts
from pages.week.release_card import show_known_bad, show_release, show_unknown_models
from pages.week.week_steps import show_cards, show_next


def show_proposals(store: Store, now: datetime) -> None:
    """Releases that wait for a second person."""
    for proposal in store.proposals.list(waiting=True):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/how_to_reg: {proposals.heading(store, proposal, now)}", width="stretch")
            if shell.may_open("release"):
                st.page_link(shell.page("release"), label="Look at it", icon=":material/verified:")


def show_fallen(store: Store, release: Release | None) -> None:
    """Thresholds of the live release that a recheck found below their target."""
    for state in fallen(store, release.version) if release else ():
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/trending_down: {plain(recheck.verdict(state), 400)}", width="stretch")
            if shell.may_open("recalibrate"):
                st.page_link(shell.page("recalibrate"), label="Recalibrate", icon=":material/autorenew:")


@shell.cached_read("Looking at the live thresholds …", *shell.EVIDENCE, "points", "releases", "rechecks")
def live_states(store: Store) -> tuple[Judged, ...]:
    """What is known now of the live thresholds."""
    return judge_live(store)


def live(store: Store, file: ThresholdsFile, judged: Sequence[Judged]) -> None:
    """What the release does in production, and how well that is known."""
    left, right = st.columns(2, gap="large")
    with left:
        week_charts.show_flags(store, file, store.traces.summary().last)
    with right:
        week_charts.show_precision(file, judged)


name = designs.default_name(shell.now())
with shell.page_frame(f"Week {name}", "Where the loop stands, and the one thing to do next.") as store:
    st.caption(f"{plain(store.name)} · you are {plain(shell.person().shown)}")
    now = shell.now()
    state = week(store, name=name, labeller=shell.user(), now=now, live=live_states(store))
    if not state.traces:
        first_steps.begin()
    else:
        show_next(state)
        show_proposals(store, now)
        show_cards(state, now)
        names = state.sample.names if state.sample else ()
        labels_line.show_open(names, state.at_hand, settle=state.next != "settle")
        show_unknown_models(state.unknown_models, state.release)
        show_known_bad(state.known_bad[1:])  # the first is what comes next
        show_fallen(store, state.release)
        st.space("small")
        if state.release:
            live(store, read_release(state.release), state.live)
        left, right = st.columns([2, 3], gap="large")
        with left:
            week_charts.show_traffic(store)
        with right:
            show_release(state.release, now, state.live)

"""This week: where the loop stands, and the one thing to do next."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.report.numbers import day
from calibrate.report.sentences import recheck
from calibrate.stats.sampling import designs
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import LabelState, TraceFilter
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.traces import demo
from calibrate.workflow.watching.recheck import fallen
from calibrate.workflow.week.week import week
from db import Store
from db.releases import Release
from pages import shell
from pages.components import bars, proposals
from pages.components.text import plain
from pages.week.release_card import show_release, show_unknown_models
from pages.week.week_charts import show_flags, show_precision
from pages.week.week_steps import show_cards, show_next

MONTH = timedelta(days=30)


def fill() -> None:
    """A second press finds a store that is not empty, and changes nothing."""
    try:
        with st.spinner("Loading the sample traces …"):
            demo.fill(shell.store(), shell.now())
    except TouchstoneError as error:
        st.session_state["home_problem"] = error


def begin() -> None:
    """An empty store: what this is, and two ways to start."""
    st.markdown(
        "Touchstone finds out, from traces you label, where the threshold of each hallucination detector should be, "
        "and how sure you may be of it."
    )
    if problem := st.session_state.pop("home_problem", None):
        shell.show_error(problem)
    own, sample = st.columns(2, gap="medium")
    with own, st.container(border=True, height="stretch"):
        st.markdown("**Start with your traces**")
        st.caption("Questions and answers your app has logged, as JSON lines, CSV or Parquet. They stay in this store.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
    with sample, st.container(border=True, height="stretch"):
        st.markdown("**Look around first**")
        st.caption("A fictional support bot: three weeks, two model versions, two thirds of the answers labelled.")
        st.button("Load the sample traces", icon=":material/science:", on_click=fill)


def traffic(store: Store) -> None:
    """Thirty days up to the newest trace, by label state."""
    newest = store.traces.summary().last
    st.markdown("**Traces a day**")
    if newest is None:
        st.caption("These traces carry no time, so there is no traffic to show.")
        return
    window = TraceFilter(since=newest - MONTH, undated=False)
    states: tuple[LabelState, ...] = ("hallucinated", "clean", "unsure", "disputed", "unlabelled")
    counts = {state: store.traces.per_day(replace(window, label=state)) for state in states}
    st.caption(f"The 30 days up to {day(newest)}, by label")
    bars.days({state: counts for state, counts in counts.items() if counts}, key="traffic")


def show_proposals(store: Store, now: datetime) -> None:
    """Releases that wait for a second person."""
    for proposal in store.proposals.list(waiting=True):
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/how_to_reg: {proposals.heading(store, proposal, now)}", width="stretch")
            st.page_link(shell.page("release"), label="Look at it", icon=":material/verified:")


def show_fallen(store: Store, release: Release | None) -> None:
    """Thresholds of the live release that a recheck found to be below their target."""
    for state in fallen(store, release.version) if release else ():
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/trending_down: {plain(recheck.verdict(state), 400)}", width="stretch")
            st.page_link(shell.page("recalibrate"), label="Recalibrate", icon=":material/autorenew:")


def live(store: Store, file: ThresholdsFile) -> None:
    """What the release does in production, and how well that is known."""
    left, right = st.columns(2, gap="large")
    with left:
        show_flags(store, file, store.traces.summary().last)
    with right:
        show_precision(file)


name = designs.default_name(shell.now())
about = f"{plain(shell.store().name)} · you are {plain(shell.user())}"
with shell.page_frame(f"Week {name}", about) as store:
    now = shell.now()
    state = week(store, name=name, labeller=shell.user(), now=now)
    if not state.traces:
        begin()
    else:
        show_next(state)
        show_proposals(store, now)
        show_cards(state, now)
        show_unknown_models(state.unknown_models, state.release)
        show_fallen(store, state.release)
        st.space("small")
        if state.release:
            live(store, read_release(state.release))
        left, right = st.columns([2, 3], gap="large")
        with left:
            traffic(store)
        with right:
            show_release(state.release, now)

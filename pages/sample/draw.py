"""Sample: choose the pool, see what a sample of it will buy, draw it."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.steps import sample as step
from calibrate.types import TraceFilter
from db import Store
from pages.parts import workbench
from pages.parts.navigation import page
from pages.parts.pool import PoolView, choose_pool, show_pool, view_of
from pages.parts.sample_plan import free_name, show_plan, show_samples, show_strata
from pages.parts.text import plain, visible

SIZE = 300
RANDOM, STRATIFIED = "random", "stratified"


def draw(where: TraceFilter, by: str | None) -> None:
    """Pressed twice, the second draw finds its name taken and draws nothing."""
    state = st.session_state
    try:
        drawn = step.draw(
            workbench.store(),
            state["draw_name"].strip(),
            size=int(state["draw_size"] or SIZE),
            design=STRATIFIED if by else RANDOM,
            by=by,
            where=where,
            seed=state["draw_seed"],
            now=workbench.now(),
        )
    except TouchstoneError as error:
        state["draw_problem"] = error
        return
    state["sample_at_hand"] = state["draw_done"] = drawn.name
    state.pop("draw_name", None)


def choose_design(store: Store) -> str | None:
    """The attribute to stratify by; None for a random sample."""
    left, right = st.columns(2)
    with left:
        about = "Stratified: every group gets labels, small ones more than their share. The figures are weighted back."
        design = st.segmented_control(
            "Design",
            [RANDOM, STRATIFIED],
            default=RANDOM,
            required=True,
            format_func=str.title,
            help=about,
            key="draw_design",
        )
    if design == RANDOM:
        return None
    names = ["model", "operation", *store.traces.attribute_names()]
    with right:
        return st.selectbox("By", names, format_func=lambda name: visible(name, 60), key="draw_by")


def form(store: Store, *, primary: bool) -> None:
    left, right = st.columns([5, 4], gap="large")
    with left:
        where = choose_pool(store, store.traces.summary().last)
        by = choose_design(store)
        name, size, seed = st.columns([2, 1, 1])
        st.session_state.setdefault("draw_name", free_name(store, workbench.now()))
        name.text_input("Name", key="draw_name", max_chars=200)
        size.number_input("Traces", min_value=1, max_value=100_000, value=SIZE, step=50, key="draw_size")
        about = "The same seed draws the same sample from the same traces."
        seed.number_input("Seed", min_value=0, value=None, step=1, placeholder="random", help=about, key="draw_seed")
        pool = view_of(store, where, by)
        finish(store, pool, where, by, primary=primary)
    with right:
        show_pool(pool, where)


def finish(store: Store, pool: PoolView, where: TraceFilter, by: str | None, *, primary: bool) -> None:
    if problem := st.session_state.pop("draw_problem", None):
        workbench.problem(problem)
    if not pool.size:
        st.info("No trace is in this pool. Widen the window or the filters.", icon=":material/filter_list_off:")
        return
    n = int(st.session_state["draw_size"] or SIZE)
    show_plan(store, n, pool.size)
    if by:
        show_strata(pool.facets[by], n)
    drawn = min(n, pool.size)
    text = f"Draw all {drawn:,}" if drawn == pool.size else f"Draw {drawn:,} of {pool.size:,}"
    st.button(
        text, type="primary" if primary else "secondary", icon=":material/casino:", on_click=draw, args=(where, by)
    )


with workbench.page("Sample", "Draw the traces to label, each with a known chance, so that the figures hold.") as store:
    samples = store.samples.list()
    fresh = next((one for one in samples if one.name == st.session_state.get("draw_done")), None)
    if not store.traces.count(TraceFilter(), limit=1):
        st.markdown("There are no traces to draw from yet.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(page("import"))
    else:
        if fresh:
            with st.container(
                border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
            ):
                st.markdown(
                    f"**{plain(fresh.name)}** is drawn: {fresh.size:,} of {fresh.pool:,} traces.", width="content"
                )
                if st.button("Label them", type="primary", icon=":material/arrow_forward:", icon_position="right"):
                    st.switch_page(page("label"))
        form(store, primary=fresh is None)
        if samples:
            st.space("small")
            st.markdown("**Samples**")
            show_samples(store, samples, workbench.now())

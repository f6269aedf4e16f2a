"""The form that draws a sample: the pool, the design, what it will buy."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.stats.sampling import designs
from calibrate.types import TraceFilter
from calibrate.workflow.sampling import sample as step
from db import Store
from pages import shell
from pages.label.pool import PoolView, choose_pool, show_pool, view_of
from pages.label.sample_design import Choice, choose_design, strata_of
from pages.label.sample_plan import free_name, show_plan, show_strata

SIZE = 300


def draw(where: TraceFilter, choice: Choice) -> None:
    """Draw the sample. A second press finds the name taken and draws nothing."""
    state = st.session_state
    with shell.errors_kept("draw_problem"):
        drawn = step.draw(
            shell.store(),
            state["draw_name"].strip(),
            size=int(state["draw_size"] or SIZE),
            design=choice.design,
            by=choice.by,
            where=where,
            seed=state["draw_seed"],
            now=shell.now(),
            cut=choice.cut,
            fresh=choice.fresh,
        )
        state["sample_at_hand"] = state["draw_done"] = drawn.name
        st.query_params.pop("sample", None)
        state.pop("draw_name", None)


def form(store: Store, *, primary: bool) -> None:
    left, right = st.columns([5, 4], gap="large")
    with left:
        where = choose_pool(store, store.traces.summary().last)
        choice = choose_design(store, where, store.traces.count(where))
        name, size, seed = st.columns([2, 1, 1])
        st.session_state.setdefault("draw_name", free_name(store, shell.now()))
        name.text_input("Name", key="draw_name", max_chars=200)
        size.number_input("Traces", min_value=1, max_value=100_000, value=SIZE, step=50, key="draw_size")
        about = "The same seed draws the same sample from the same store."
        seed.number_input("Seed", min_value=0, value=None, step=1, placeholder="random", help=about, key="draw_seed")
        pool = view_of(store, where, choice.by)
        with shell.guarded():
            finish(store, pool, where, choice, primary=primary)
    with right:
        show_pool(pool, where)


def finish(store: Store, pool: PoolView, where: TraceFilter, choice: Choice, *, primary: bool) -> None:
    shell.show_kept_error("draw_problem")
    if not pool.size:
        st.info("No trace is in this pool. Widen the window or the filters.", icon=":material/filter_list_off:")
        return
    if not choice.ready:
        return
    strata = strata_of(store, where, choice)
    total = sum(strata.values())
    n = min(int(st.session_state["draw_size"] or SIZE), total)
    show_plan(store, where, choice, n, total)
    if len(strata) > 1:
        show_strata({name: (strata[name], drawn) for name, drawn in designs.allocate(strata, n).items()})
    text = f"Draw all {count(n)}" if n == total else f"Draw {count(n)} of {count(total)}"
    args = (where, choice)
    st.button(text, type="primary" if primary else "secondary", icon=":material/casino:", on_click=draw, args=args)

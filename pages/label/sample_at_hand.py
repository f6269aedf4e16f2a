"""The sample at hand: its strata, what one label of each stands for, and drawing more traces for it."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count, day, listed
from calibrate.types import Sample
from calibrate.workflow.sampling.topup import top_up
from calibrate.workflow.traces.stated_samples import is_stated, state_again
from db import Store
from pages import shell
from pages.components.text import plain
from pages.label.sample_design import in_words
from pages.label.sample_plan import show_strata
from pages.shell.bar import at_hand

MORE = 50
STATED_AS = "sample_stated_as"
STATEMENTS = {
    "random": "At random",
    "flagged": "They were flagged",
    "feedback": "People picked or complained of them",
    "unknown": "Nobody knows",
}


def show_at_hand(store: Store) -> None:
    """The chosen sample, which can be topped up."""
    left, right = st.columns([5, 4], gap="large")
    with left:
        sample = at_hand.drawn(store)
        if sample is None:
            return
        st.markdown(
            f"**{plain(sample.name)}**: {count(sample.size)} of {count(sample.pool, 'trace')}, "
            f"{plain(in_words(sample))}."
        )
        if is_stated(sample):
            _state(sample)
        else:
            _more(sample)
    with right:
        show_strata({name: (size, n) for name, (size, n) in sample.strata.items()})


def _state(sample: Sample) -> None:
    """What was said of how imported traces were chosen, which can be taken back."""
    statements = [
        f"{STATEMENTS.get(each.design, each.design).lower()} ({day(each.at)})" for each in sample.options.stated
    ]
    st.caption(plain(f"Imported labels. How their traces were chosen, as stated: {listed(statements, 9)}."))
    with st.expander("Advanced"):
        st.radio(
            "How were these traces chosen?", list(STATEMENTS), format_func=STATEMENTS.__getitem__, key=STATED_AS,
            index=list(STATEMENTS).index(sample.design) if sample.design in STATEMENTS else None,
        )  # fmt: skip
        st.button("State it", on_click=_state_it, args=(sample.name,))
        st.caption("Figures and thresholds that stand on them follow; what was stated before is kept.")
    shell.show_kept_error("state_problem")


def _state_it(name: str) -> None:
    store, design = shell.store(), st.session_state.get(STATED_AS)
    sample = store.samples.get(name)
    if sample is None or design is None:
        return
    with shell.errors_kept("state_problem"):
        state_again(store, sample, design=design, by=shell.user(), now=shell.now())


def _more(sample: Sample) -> None:
    if sample.size >= sample.pool:
        st.caption("It holds every trace of its pool: there are no more.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        most = sample.pool - sample.size
        st.number_input(
            "More traces", min_value=1, max_value=most, value=min(MORE, most), step=10, key="more", width=140
        )
        n = int(st.session_state.get("more") or min(MORE, most))
        st.button(
            f"Draw {count(n)} more", icon=":material/add:", on_click=_draw_more, args=(sample.name, sample.size, n)
        )
    st.caption("From the traces it was drawn from, by the same strata; those imported since take no part.")
    shell.show_kept_error("more_problem")


def _draw_more(name: str, shown_size: int, more: int) -> None:
    """Top up the sample. A second press finds it larger than the page showed, and draws nothing."""
    store = shell.store()
    sample = store.samples.get(name)
    if sample is None or sample.size != shown_size:
        return
    with shell.errors_kept("more_problem"):
        top_up(store, name, more=more, seed=None, now=shell.now())

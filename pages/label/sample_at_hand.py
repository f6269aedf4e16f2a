"""The sample at hand: its strata, what one label of each stands for, and drawing more traces for it."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.types import Sample
from calibrate.workflow.sampling.topup import top_up
from db import Store
from pages import shell
from pages.components import evidence_choice
from pages.components.text import plain
from pages.label.sample_design import in_words
from pages.label.sample_plan import show_strata

MORE = 50


def show_at_hand(store: Store) -> None:
    """The chosen sample, which can be topped up."""
    left, right = st.columns([5, 4], gap="large")
    with left:
        sample = evidence_choice.choose_sample(store, label="Sample at hand")
        if sample is None:
            return
        st.markdown(
            f"**{plain(sample.name)}**: {count(sample.size)} of {count(sample.pool, 'trace')}, "
            f"{plain(in_words(sample))}."
        )
        _more(sample)
    with right:
        show_strata({name: (size, n) for name, (size, n) in sample.strata.items()})


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

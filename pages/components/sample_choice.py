"""The sample at hand: chosen once, kept across pages and reloads."""

from __future__ import annotations

import streamlit as st

from calibrate.types import Sample
from db import Store


def choose_sample(store: Store, *, label: str = "Sample") -> Sample | None:
    """The chosen sample, also kept in the address; None if none is drawn yet."""
    samples = store.samples.list()
    if not samples:
        return None
    names = [sample.name for sample in samples]
    requested = st.query_params.get("sample") or st.session_state.get("sample_at_hand")
    # Unless a sample is named: the newest in which a trace has no verdict yet, of anybody.
    unfinished = (
        place for place, sample in enumerate(samples) if sum(store.labels.gold_counts(sample.id).values()) < sample.size
    )
    index = names.index(requested) if requested in names else next(unfinished, 0)
    name = st.selectbox(label, names, index=index, format_func=lambda n: _title(samples[names.index(n)]))
    st.session_state["sample_at_hand"] = name
    if requested != name or st.query_params.get("sample"):
        st.query_params["sample"] = name
    return samples[names.index(name)]


def _title(sample: Sample) -> str:
    return f"{sample.name} · {sample.size} traces · {sample.design.replace('-', ' ')}"

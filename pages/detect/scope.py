"""Which traces a run goes over: the sample at hand, all labelled ones, or all."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calibrate.report.numbers import count
from calibrate.types import TraceFilter
from calibrate.workflow.detection.detect import scope_of
from db import Store
from pages import shell
from pages.components.text import label
from pages.shell.bar import at_hand

SAMPLE, LABELLED, ALL = "sample", "labelled", "all"
KEY = "detect_scope"


@shell.cached_read(None, "traces", "labels")
def _sizes(store: Store) -> dict[str, int]:
    return {LABELLED: sum(store.labels.gold_counts().values()), ALL: store.traces.count(TraceFilter())}


def choose(store: Store) -> dict[str, Any]:
    """The traces of the next run. The sample at hand unless somebody chooses others; the choice is in the address."""
    sample, sizes = at_hand.drawn(store), dict(_sizes(store))
    words = {LABELLED: "All labelled", ALL: "All traces"}
    if sample is not None:
        words, sizes = {SAMPLE: label(sample.name, 30), **words}, {**sizes, SAMPLE: sample.size}
    options = [option for option in words if sizes[option]]
    requested = st.query_params.get("traces")
    if st.session_state.get(KEY) not in options:
        st.session_state[KEY] = requested if requested in options else options[0]
    chosen = st.segmented_control(
        "Which traces",
        options,
        required=True,
        format_func=lambda option: f"{words[option]} · {count(sizes[option])}",
        key=KEY,
        label_visibility="collapsed",
    )
    if chosen != options[0] or requested:
        st.query_params["traces"] = str(chosen)
    if chosen == SAMPLE and sample is not None:
        return scope_of(sample=sample.name)
    return scope_of(labelled=True) if chosen == LABELLED else scope_of(everything=True)

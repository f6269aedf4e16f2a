"""The form of a run: which traces, which detectors, and the button."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calibrate.report.numbers import count
from calibrate.types import TraceFilter
from calibrate.workflow.detection.detect import scope_of
from db import Store
from db.runs import ENDED, Run
from pages.components.run_view import queue
from pages.detect.detector_form import choose_budget, choose_detectors
from pages.shell.bar import at_hand

SAMPLE, LABELLED, ALL = "The sample", "All labelled", "All"


def choose_scope(store: Store) -> tuple[dict[str, Any], int]:
    """Which traces, and how many."""
    samples = store.samples.list()
    counts = {LABELLED: sum(store.labels.gold_counts().values()), ALL: store.traces.count(TraceFilter())}
    options = [*([SAMPLE] if samples else []), *([LABELLED] if counts[LABELLED] else []), ALL]
    traces = st.segmented_control(
        "Traces",
        options,
        default=options[0],
        required=True,
        format_func=lambda name: name if name == SAMPLE else f"{name} · {count(counts[name])}",
        key="detect_scope",
    )
    if traces == SAMPLE:
        sample = at_hand.drawn(store)
        assert sample is not None
        return scope_of(sample=sample.name), sample.size
    if traces == LABELLED:
        return scope_of(labelled=True), counts[LABELLED]
    return scope_of(everything=True), counts[ALL]


def form(store: Store, *, again: bool) -> None:
    scope, traces = choose_scope(store)
    detectors = choose_detectors()
    text = f"Run {count(len(detectors), 'detector')} over {count(traces, 'trace')}" if detectors else "Run"
    budget = choose_budget(detectors)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            text,
            type="secondary" if again else "primary",
            icon=":material/play_arrow:",
            disabled=not detectors,
            on_click=queue,
            args=(store, detectors, scope, budget),
        )
        st.caption("Scores are kept: running again computes only what is missing.", width="content")


def is_current(store: Store, newest: Run | None) -> bool:
    """True if the newest run went over all its traces and no sample was drawn since."""
    samples = store.samples.list()
    return newest is not None and newest.status in ENDED and (not samples or samples[0].created_at <= newest.created_at)

"""Detect: choose detectors and traces, let a worker score them, see what came of it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calibrate.report.numbers import count
from calibrate.types import TraceFilter
from calibrate.workflow.detection.detect import scope_of
from calibrate.workflow.detection.detectors import put_in_place
from db import Store
from db.runs import Run
from pages import shell
from pages.components import sample_choice
from pages.components.run_view import is_going, queue, show_history, show_problem, show_progress, show_result
from pages.detect.detector_form import choose_budget, choose_detectors

SAMPLE, LABELLED, ALL = "The sample", "All labelled", "All"


def choose_scope(store: Store) -> tuple[dict[str, Any], int]:
    """Which traces, and how many they are."""
    left, right = st.columns(2)
    samples = store.samples.list()
    counts = {LABELLED: sum(store.labels.gold_counts().values()), ALL: store.traces.count(TraceFilter())}
    options = [*([SAMPLE] if samples else []), *([LABELLED] if counts[LABELLED] else []), ALL]
    with left:
        traces = st.segmented_control(
            "Traces",
            options,
            default=options[0],
            required=True,
            format_func=lambda name: name if name == SAMPLE else f"{name} · {count(counts[name])}",
            key="detect_scope",
        )
    if traces == SAMPLE:
        with right:
            sample = sample_choice.choose_sample(store)
        assert sample is not None
        return scope_of(sample=sample.name), sample.size
    if traces == LABELLED:
        return scope_of(labelled=True), counts[LABELLED]
    return scope_of(everything=True), counts[ALL]


def is_current(store: Store, newest: Run | None) -> bool:
    """True when the newest run is done and no sample was drawn since."""
    samples = store.samples.list()
    return (
        newest is not None and newest.status == "done" and (not samples or samples[0].created_at <= newest.created_at)
    )


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


with shell.page_frame(
    "Detect", "Let each detector score the traces. A threshold comes later, from the labels."
) as store:
    put_in_place(store)
    show_problem()
    runs = store.runs.recent()
    newest = runs[0] if runs else None
    if not store.traces.count(TraceFilter(), limit=1):
        st.markdown("There are no traces to score yet.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
    elif newest and is_going(newest):
        show_progress(store, newest.id)
    else:
        done = is_current(store, newest)
        if newest:
            show_result(newest)
        if done and st.button(
            "Tune thresholds", type="primary", icon=":material/arrow_forward:", icon_position="right"
        ):
            st.switch_page(shell.page("tune"))
        if done:
            with st.expander("Run again, or with other detectors, settings or traces", icon=":material/replay:"):
                form(store, again=True)
        else:
            form(store, again=False)
    if len(runs) > 1:
        st.space("small")
        st.markdown("**Runs before**")
        show_history(runs[1:], shell.now())

"""Detectors: what each measures, whether it can run, what it has scored, what the next run would take."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection import detectors as step
from calibrate.workflow.detection import team_files
from calibrate.workflow.detection.outcomes import state
from db import Store
from pages import shell
from pages.components.run_view import is_going, show_problem, show_progress, show_result
from pages.detect import detector_compare, detector_detail, detector_table, file_editor
from pages.shell.bar import at_hand


def choose_traces(store: Store) -> tuple[Sample | None, dict[str, Any]]:
    """The sample at hand; without one, the labelled traces, or all."""
    sample = at_hand.drawn(store)
    scope = step.scope_at_hand(store, sample.name if sample else None)
    if sample is None:
        traces = "all labelled traces" if scope.get("labelled") else "all traces, for none is labelled yet"
        st.markdown(f"There is no sample yet; figures are of {traces}.")
        st.page_link(shell.page("sample"), label="Draw a sample", icon=":material/casino:")
    return sample, scope


def show_run(store: Store, overview: step.Overview, scope: dict[str, Any]) -> None:
    """The parameters and what a run would take, or the run that is going."""
    newest = next(iter(store.runs.recent(1)), None)
    if newest and is_going(newest):
        show_progress(store, newest.id)
        return
    if newest and state(newest) in ("failed", "incomplete"):
        show_result(store, newest)
    try:
        detector = detector_detail.settings(overview.detector)
    except TouchstoneError as error:
        shell.show_error(error)
        return
    detector_detail.offer_run(store, detector, scope, shown=overview.status.how)


with shell.page_frame("Detectors", "What each one measures, whether it can run here, and what it has scored.") as store:
    step.put_in_place(store)
    show_problem()
    if not store.traces.count(TraceFilter(), limit=1):
        st.markdown("There are no traces yet. Here you would see what each detector could score of them.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
        st.stop()
    sample, scope = choose_traces(store)
    chosen = detector_table.choose(step.overview(store, scope))
    detector_detail.show(store, chosen, shell.now())
    show_run(store, chosen, scope)
    if (prompt := step.prompt_of(chosen.detector)) is not None:
        with st.expander("Prompt", icon=":material/chat:"):
            file_editor.edit(store, team_files.get(store, prompt), shell.now())
    detector_compare.show(store, chosen.detector.name, sample.name if sample else None)
    file_editor.show_lists(store, shell.now())

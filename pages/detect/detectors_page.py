"""One detector: what it measures, whether it can run, what it has scored, its prompt, two of its settings compared."""

from __future__ import annotations

from typing import Any

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.types import TraceFilter
from calibrate.workflow.detection import detectors as step
from calibrate.workflow.detection import team_files
from calibrate.workflow.detection.outcomes import state
from db import Store
from pages import shell
from pages.components.run_view import is_going, show_problem, show_progress, show_result
from pages.components.text import visible
from pages.detect import detector_compare, detector_detail, file_editor
from pages.detect.judge import view as judge_and_people
from pages.shell.bar import at_hand


def choose(store: Store, scope: dict[str, Any]) -> step.Overview:
    """The detector that the address names, by its title; the first without one."""
    rows = {row.detector.name: row for row in step.overview(store, scope)}
    names = sorted(rows, key=lambda name: rows[name].detector.title.casefold())
    requested = st.query_params.get("detector") or st.session_state.get("detector_at_hand")
    name = st.selectbox(
        "Detector",
        names,
        index=names.index(requested) if requested in names else 0,
        format_func=lambda name: visible(rows[name].detector.title, 60),
        width=340,
    )
    st.session_state["detector_at_hand"] = st.query_params["detector"] = name
    return rows[name]


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


with shell.page_frame("Detector", "What it measures, whether it can run here, and what it has scored.") as store:
    step.put_in_place(store)
    show_problem()
    if not store.traces.count(TraceFilter(), limit=1):
        st.markdown("There are no traces yet. Here you would see what each detector could score of them.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))
        st.stop()
    sample = at_hand.drawn(store)
    sample_name = sample.name if sample else None
    scope = step.scope_at_hand(store, sample_name)
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        chosen = choose(store, scope)
        st.page_link(shell.page("detect"), label="All detectors", icon=":material/arrow_back:")
    if judge_and_people.is_open(chosen.detector.name):
        judge_and_people.show(store, chosen.detector)
    else:
        detector_detail.show(store, chosen, shell.now())
        show_run(store, chosen, scope)
        if (prompt := step.prompt_of(chosen.detector)) is not None:
            with st.expander("Prompt", icon=":material/chat:"):
                file_editor.edit(store, team_files.get(store, prompt), shell.now())
        detector_compare.show(store, chosen.detector.name, sample_name)
    file_editor.show_lists(store, shell.now())

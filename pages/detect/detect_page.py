"""Detect: what can run on the traces at hand, what they lack, what needs setup; run it, and see what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.backends import files
from calibrate.detectors.base import Detector
from calibrate.report.sentences.detection import detection as sentences
from calibrate.types import TraceFilter
from calibrate.workflow.detection import readiness as step
from calibrate.workflow.detection.detectors import put_in_place
from calibrate.workflow.detection.outcomes import failures
from db import Store
from db.runs import ENDED, Run
from pages import shell
from pages.components import run_view
from pages.components.text import plain
from pages.detect import catalogue, ready_table, run_bar, scope, sheet
from pages.detect.detector_form import configured

BEFORE = "detect_rows"  # in the session: what was known before the run that is going


@shell.cached_read("Looking at the traces …", *shell.EVIDENCE, "runs", "team", "replies", entries=100)
def _look(store: Store, about: str, prices: str, _where: Mapping[str, Any], _detectors: list[Detector]) -> Any:
    return step.readiness(store, _where, _detectors)


def look(store: Store, where: Mapping[str, Any]) -> tuple[step.Readiness, ...]:
    """What is known of every detector with its settings of this session."""
    detectors = [configured(registry.make(name)) for name in registry.names()]
    facts = [[each.name, registry.config_of(each), each.revision(), each.unavailable()] for each in detectors]
    about = json.dumps([facts, dict(where)], default=str)
    rows: tuple[step.Readiness, ...] = _look(store, about, files.version("prices.csv"), where, detectors)
    return rows


@st.fragment(run_every=1)
def show_running(store: Store, run_id: int) -> None:
    """The table while a run is going: what was known before it, and how far it is with each detector."""
    run = run_view.going(store, run_id)
    rows_before = st.session_state.get(BEFORE)
    if rows_before is None or rows_before[0] != run_id:
        rows_before = st.session_state[BEFORE] = run_id, look(store, run.scope)
    run_bar.show_running(store, run)
    ready_table.show(store, rows_before[1], run)


def show_outcome(store: Store, run: Run, rows: Sequence[step.Readiness]) -> None:
    """What came of the newest run, in a line, with the ways on; what failed can be run again together."""
    with st.container(horizontal=True, vertical_alignment="center"):
        run_view.show_outcome(run)
        if len(failures(run)) > 1:
            st.button("Run again what failed", icon=":material/replay:", on_click=run_view.retry, args=(store, run))
        if run.status in ENDED and not run_bar.is_done(rows):
            run_bar.go_on(is_primary=False)
    shown = {row.detector.name for row in ready_table.ready(rows) if row.run == run.id}
    if others := [failure for failure in failures(run) if failure.detector not in shown]:
        st.error("  \n".join(plain(sentences.failed(failure), 600) for failure in others), icon=":material/error:")


def show(store: Store) -> None:
    runs = store.runs.recent()
    newest = runs[0] if runs else None
    st.html(run_bar.STYLE)
    if newest and run_view.is_going(newest):
        show_running(store, newest.id)
    else:
        with st.container(key="detect-run", horizontal=True, vertical_alignment="center"):
            button = st.container(horizontal=True, vertical_alignment="center", width="content")
            where = scope.choose(store)
        rows = look(store, where)
        with button:
            run_bar.show(store, rows, where)
        if newest:
            show_outcome(store, newest, rows)
        ready_table.show(store, rows)
        catalogue.show(store, where)
        sheet.show(store, where)
    if runs:
        with st.expander("Runs so far", icon=":material/history:"):
            run_view.show_history(runs, shell.now())


with shell.page_frame(
    "Detect", "Let each detector score the traces. A threshold comes later, from the labels."
) as store:
    put_in_place(store)
    run_view.show_problem()
    if store.traces.count(TraceFilter(), limit=1):
        show(store)
    else:
        st.markdown("There are no traces to score yet. Here you would see which detectors can run on them.")
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))

"""The bar that stays in sight: which traces, how many detectors, how long that takes, and the button."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import streamlit as st

from calibrate.report.numbers import count
from calibrate.report.sentences.detection import readiness as sentences
from calibrate.workflow.detection.readiness import Readiness, Standing, total_of
from db import Store
from db.runs import Run
from pages import shell
from pages.components import run_view
from pages.detect import ready_table
from pages.detect.detector_form import choose_budget

STYLE = """<style>
[data-testid=stLayoutWrapper]:has(> .st-key-detect-run) {position: sticky; top: 2.75rem; z-index: 20}
.st-key-detect-run {background: light-dark(#FFFFFF, #15171B); padding: .4rem 0;
  border-bottom: 1px solid rgba(138,143,152,.25)}
</style>"""


def show(store: Store, rows: Sequence[Readiness], scope: Mapping[str, Any]) -> None:
    """The button that runs what is ticked, and what that takes; the way on where nothing is left to run."""
    chosen = ready_table.chosen(rows)
    if is_done(rows):
        go_on(is_primary=True)
        st.caption("Nothing is ticked.", width="content")
        return
    detectors = [row.detector for row in chosen]
    run = st.container(width="content")
    budget = choose_budget(detectors)
    run.button(
        f"Run {count(len(chosen))} · {sentences.of_run(total_of(chosen))}" if chosen else "Run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=not chosen,
        key="detect_run",
        help=None if chosen else "Tick a detector first.",
        on_click=_run,
        args=(store, detectors, scope, budget),
    )


def show_running(store: Store, run: Run) -> None:
    """The same place while a run is going: how far, how fast, how long still, and Stop."""
    now = shell.now()
    with st.container(key="detect-run"):
        if run_view.is_interrupted(store, run, now):
            run_view.show_going(store, run)
            return
        with st.container(horizontal=True, wrap=False, vertical_alignment="center"):
            share = min(1.0, run.done / run.total) if run.total else 0.0
            st.progress(share, text=f"Run {run.id} · {run_view.progress_text(run, now, run_view.rate_of(run, now))}")
            run_view.stop_button(store, run)


def is_done(rows: Sequence[Readiness]) -> bool:
    """Whether there are scores and nothing is ticked, so that the way on is the next step."""
    return not ready_table.chosen(rows) and any(row.standing == Standing.DONE for row in rows)


def go_on(*, is_primary: bool) -> None:
    """The way to the next step."""
    kind: Literal["primary", "secondary"] = "primary" if is_primary else "secondary"
    if st.button("Tune thresholds", type=kind, icon=":material/arrow_forward:", icon_position="right"):
        st.switch_page(shell.page("tune"))


def _run(store: Store, detectors: Sequence[Any], scope: Mapping[str, Any], budget: float | None) -> None:
    ready_table.forget()
    run_view.queue(store, detectors, scope, budget)

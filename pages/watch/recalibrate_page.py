"""Recalibrate: after an upgrade, the same policies on the new scores, the difference, and the next release."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.workflow.upgrade import planning
from calibrate.workflow.upgrade import recalibrate as step
from db import Store
from db.runs import ENDED, Run
from pages import shell
from pages.components import run_view
from pages.components import unknown_models as unseen
from pages.watch import recalibrate_release, recalibration, unreleased


def rescore(store: Store) -> None:
    """Queue the missing scores and start a worker, unless a run is going already."""
    if any(run_view.is_going(run) for run in store.runs.recent(1)):
        return
    with shell.errors_kept("recalibrate_problem"):
        if queued := planning.queue(store, planning.plan(store)):
            run_view.start(store, queued.id)


def _tried(plan: planning.Plan, newest: Run | None) -> bool:
    """Whether the last run covered what is missing: what failed in it need not be waited for."""
    waiting = {due.name for due in plan.due if due.waiting}
    ran = {spec["name"] for spec in newest.detectors} if newest and newest.status in ENDED else set()
    return waiting <= ran


def show(store: Store) -> None:
    unseen.show(store, links=False)
    plan = planning.plan(store)
    recalibration.show_why(plan)
    newest = next(iter(store.runs.recent(1)), None)
    if plan.waiting and newest and run_view.is_going(newest):
        run_view.show_progress(store, newest.id)
        return
    if plan.waiting:
        tried = _tried(plan, newest)
        st.button(
            f"Run {count(plan.waiting, 'missing score')}",
            type="secondary" if tried else "primary",
            icon=":material/play_circle:",
            on_click=rescore,
            args=(store,),
        )
        st.caption("On the traces that are labelled already. Old scores stay; no label is needed.")
        if not tried:
            return
    outcome = recalibration.load(store, plan, step.SAME)
    recalibration.show_points(outcome)
    recalibration.show_curves(outcome.redone)
    recalibrate_release.offer(store, outcome)


with shell.page_frame(
    "Recalibrate",
    "A model, prompt or detector changed: the same policies on the new scores, and the next release.",
) as opened:
    recalibrate_release.tell()
    if opened.releases.list():
        show(opened)
    else:
        unreleased.show("Once thresholds are live, this page brings them up to date after an upgrade.")

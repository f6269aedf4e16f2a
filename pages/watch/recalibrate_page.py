"""Recalibrate: after an upgrade, the same policies on the new scores, the difference, and the next release."""

from __future__ import annotations

import streamlit as st

from calibrate import settings
from calibrate.errors import TouchstoneError
from calibrate.report.numbers import count
from calibrate.report.sentences import recalibration as sentences
from calibrate.workflow.releasing.announce import announce
from calibrate.workflow.releasing.unknown_models import unknown_models
from calibrate.workflow.upgrade import recalibrate as step
from db import Store
from db.releases import Release
from db.runs import Run
from pages import shell
from pages.components import run_view
from pages.components import unknown_models as unseen
from pages.components.release_diff import lines_of
from pages.components.release_history import download
from pages.components.text import middle, plain, visible
from pages.watch import recalibration, unreleased


def rescore(store: Store) -> None:
    """Queues what is missing and starts a worker, unless a run is going already."""
    if any(run_view.is_going(run) for run in store.runs.recent(1)):
        return
    try:
        if queued := step.queue(store, step.plan(store)):
            run_view.start(store, queued.id)
    except TouchstoneError as error:
        st.session_state["recalibrate_problem"] = error


def release(store: Store, outcome: step.Outcome) -> None:
    """Releases what the page shows, or nothing: a second press finds that number taken."""
    state = st.session_state
    note, reason = (str(state.get(f"recalibrate_{key}") or "").strip() for key in ("note", "reason"))
    after = settings.releases()
    try:
        result = step.release(
            store, outcome, note=note or f"Recalibrated after v{outcome.plan.release.version}.", reason=reason,
            by=shell.user(), now=shell.now(), approval=after.approval,
        )  # fmt: skip
    except TouchstoneError as error:
        state["recalibrate_problem"] = error
        return
    problems = announce(result, after) if isinstance(result, Release) else []
    state["recalibrate_done"] = (result.version if isinstance(result, Release) else None, result, problems)
    state["recalibrate_note"] = state["recalibrate_reason"] = ""


def tell() -> None:
    """What the last press did."""
    if problem := st.session_state.pop("recalibrate_problem", None):
        shell.show_error(problem)
    if done := st.session_state.pop("recalibrate_done", None):
        version, result, problems = done
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            sentence = f"v{version} is released." if version else f"Proposal {result.id} waits for a second person."
            st.markdown(f":material/verified: **{sentence}**", width="stretch")
            if version:
                download(result, key="recalibrated")
            st.page_link(shell.page("release"), label="See it", icon=":material/verified:")
        for problem in problems:
            st.warning(plain(problem, 400), icon=":material/cloud_off:")


def _stands(outcome: step.Outcome) -> None:
    if not outcome.plan.fallen:
        st.markdown(f":material/check: Nothing changes: v{outcome.plan.release.version} stands.")
        return
    st.warning(
        "The same policies on these labels give the same thresholds, and a recheck says that they no longer do what "
        "they did. Choose a stricter threshold, label a new sample of the traffic, or put the detector into tier off.",
        icon=":material/trending_down:",
    )
    with st.container(horizontal=True):
        st.page_link(shell.page("tune"), label="Choose a threshold", icon=":material/tune:")
        st.page_link(shell.page("sample"), label="Draw a sample", icon=":material/casino:")
        st.page_link(shell.page("release"), label="Change a tier, or roll back", icon=":material/verified:")


def offer(store: Store, outcome: step.Outcome) -> None:
    """The note, the reason where something gets worse, and the one button."""
    if not outcome.changes:
        _stands(outcome)
        for model in unknown_models(store, outcome.plan.release)[:3]:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    f"To bring **{plain(middle(visible(model.name, 200), 40))}** in, label some of its answers."
                )
                st.page_link(
                    shell.page("sample"),
                    label="Sample it",
                    icon=":material/casino:",
                    query_params={"model": model.name},
                )
        return
    recalibration.show_impact(outcome)
    with st.expander("Everything that changes"):
        st.markdown("\n".join(f"- {line}" for line in lines_of(outcome.changes)))
    st.text_input("Note", key="recalibrate_note", placeholder="Why this release, for those who read it later")
    lacks = False
    if outcome.needs_reason:
        st.caption(plain(f"Asks for a reason: {'; '.join(sentences.doubts(outcome))}.", 600))
        reason = st.text_input("Reason", key="recalibrate_reason", placeholder="Why it shall be released all the same")
        lacks = not reason.strip()
    does = "Propose" if settings.releases().approval else "Release"
    st.button(
        f"{does} v{outcome.plan.release.version + 1}",
        type="primary",
        icon=":material/verified:",
        disabled=lacks,
        on_click=release,
        args=(store, outcome),
    )


def _tried(plan: step.Plan, newest: Run | None) -> bool:
    """Whether the last run was for what is missing: what failed in it is not waited for."""
    waiting = {due.name for due in plan.due if due.waiting}
    ran = {spec["name"] for spec in newest.detectors} if newest and newest.status == "done" else set()
    return waiting <= ran


def show(store: Store) -> None:
    unseen.show(store, links=False)
    plan = step.plan(store)
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
    offer(store, outcome)


with shell.page_frame(
    "Recalibrate", "A model, prompt or detector changed: the same policies on the new scores, and the next release."
) as opened:
    tell()
    if opened.releases.list():
        show(opened)
    else:
        unreleased.show("Once thresholds are live, this page brings them up to date after an upgrade.")

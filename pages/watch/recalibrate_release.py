"""Releasing the outcome of a recalibration, and what came of it."""

from __future__ import annotations

import streamlit as st

from calibrate import settings
from calibrate.report.sentences.releasing import recalibration as sentences
from calibrate.report.sentences.releasing.release import overtaken, unannounced
from calibrate.thresholds.signing import read_signer
from calibrate.workflow.releasing import approval
from calibrate.workflow.releasing.announce import announce
from calibrate.workflow.releasing.unknown_models import unknown_models
from calibrate.workflow.upgrade import recalibrate as step
from db import Store
from db.releases import Release
from pages import shell
from pages.components.release_diff import lines_of
from pages.components.release_history import download
from pages.components.text import middle, plain, visible
from pages.watch import recalibration


def release(store: Store, outcome: step.Outcome) -> None:
    """Release what the page shows. A second press finds that number taken."""
    state = st.session_state
    note, reason = (str(state.get(f"recalibrate_{key}") or "").strip() for key in ("note", "reason"))
    after = settings.releases()
    with shell.errors_kept("recalibrate_problem"):
        result = step.release(
            store, outcome, note=note or f"Recalibrated after v{outcome.plan.release.version}.", reason=reason,
            by=shell.user(), now=shell.now(), approval=after.approval, sign=read_signer(after.sign),
        )  # fmt: skip
        problems: list[str] = []
        if isinstance(result, Release):
            problems += [overtaken(past) for past in approval.overtaken(store, result.version)]
            problems += [unannounced(failure) for failure in announce(result, after, store)]
        state["recalibrate_done"] = (result.version if isinstance(result, Release) else None, result, problems)
        state["recalibrate_note"] = state["recalibrate_reason"] = ""


def tell() -> None:
    """Show what the last press did."""
    shell.show_kept_error("recalibrate_problem")
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
    """The note, a reason if something gets worse, and the button."""
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

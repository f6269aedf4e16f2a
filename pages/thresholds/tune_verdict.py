"""The verdict on a threshold with its ways on: saving, what to do instead, a certificate."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.errors import BadInput
from calibrate.report.names import title_of
from calibrate.report.numbers import exact_share
from calibrate.report.sentences.releasing import recalibration
from calibrate.report.sentences.tuning import figures as wording
from calibrate.report.sentences.tuning import point_state
from calibrate.stats.choosing.policy import Policy
from calibrate.types import OperatingPoint, PointState, PointVerdict, StateReason
from calibrate.workflow.evidence import evidence
from calibrate.workflow.releasing.history import live_release
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.better_steps import BetterKind, BetterStep
from db import Store
from pages import shell
from pages.components.text import label, plain
from pages.components.threshold_chart import chart
from pages.components.threshold_chart.arrays import here
from pages.components.verdict_box import NO_REASON, save_anyway, verdict_box
from pages.thresholds import certify_panel, policy_controls, tune_details, tune_setting

REASON = "tune_reason"
VIEW, CERTIFY = "view", "certify"  # of the address: what stands in the chart's place


def show(
    store: Store,
    data: evidence.Evidence,
    setting: tune_setting.Setting,
    point: OperatingPoint,
    state: PointState,
    per_day: float | None,
) -> None:
    """The box: its words follow the handle, and what it offers follows where the handle rests."""
    unmet = wording.why(point) if state.why == StateReason.UNMET else None
    shown = here(point, per_day, state, unmet=unmet)

    def head() -> None:
        chart.follow(tune_setting.name_of(setting), shown, policy_controls.take_by_hand)

    with verdict_box(state, key="tune", head=head):
        if setting.strength_in_force == "certified":
            show_certificate(store, data, primary=True)
            return
        steps = tune_setting.better_steps(store, data, setting, point, state) if state.known_bad else ()
        if steps:
            _offer_better(store, data, steps)
        live = live_release(store)
        entry = live.detectors.get(data.config.name) if live else None
        if entry is not None and entry.segments is not None:
            st.caption(plain(f"{wording.capitalised(recalibration.dropped(entry.segments))}.", 600))
            st.page_link(
                shell.page("tune"),
                label="Choose per segment again",
                icon=":material/splitscreen:",
                query_params={"detector": data.config.name, tune_details.PARAM: "segments"},
            )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if not state.known_bad:
                st.button(
                    "Save as operating point",
                    type="primary",
                    icon=":material/bookmark_add:",
                    on_click=save,
                    args=(store, data),
                )
            if state.verdict == PointVerdict.NOT_SHOWN:
                st.page_link(shell.page("label"), label="Label", icon=":material/check_box:")
            if not point.feasible:
                st.button("Take the nearest by hand", on_click=policy_controls.take_by_hand, args=(point.threshold,))
            if setting.rule.kind == "precision" or certify_panel.under_way(store, data):
                show_certificate(store, data, primary=False)
            if state.known_bad and point.feasible:
                save_anyway(save, (store, data), key=REASON, label="Save anyway")
        if done := st.session_state.pop("tune_saved", None):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f":material/check: {plain(done)}", width="content")
                st.page_link(shell.page("release"), label="Release it", icon=":material/verified:")
    shell.show_kept_error("tune_problem")


def save(store: Store, data: evidence.Evidence) -> None:
    """Save what the controls say now: the page may have been drawn a key press ago.

    A second press saves the same point again, and the latest counts.
    """
    with shell.errors_kept("tune_problem"):
        setting = tune_setting.setting_for(store, data)
        point = tune_setting.point_of(store, data, setting)
        if not point.feasible:
            raise BadInput(f"{wording.why(point)}: nothing was saved")
        state, reason = tune_setting.state_of(store, data, setting, point), st.session_state.get(REASON, "").strip()
        if state.known_bad and not reason:
            raise BadInput(NO_REASON)
        operating_points.save_point(store, data, point, state=state, reason=reason, by=shell.user(), now=shell.now())
        st.session_state.update({"tune_stale": True, REASON: ""})
        title = title_of(point.detector)
        st.session_state["tune_saved"] = f"Saved: {title} flags at {tune_setting.limit_of(point)}."


def show_certificate(store: Store, data: evidence.Evidence, *, primary: bool) -> None:
    """The way to a certificate: its steps stand in the chart's place."""
    words = "Continue the certificate" if certify_panel.under_way(store, data) else "Certify"
    kind, icon = ("primary" if primary else "tertiary"), ":material/verified:"
    if st.button(words, type=kind, icon=icon, key="tune_certify", help=certify_panel.ABOUT):  # type: ignore[arg-type]
        st.query_params[VIEW] = CERTIFY
        st.rerun()


def _offer_better(store: Store, data: evidence.Evidence, steps: Sequence[BetterStep]) -> None:
    """The best step with its button; the others in one line below."""
    best, *others = steps
    st.markdown(f"**Instead:** {plain(_in_words(best))}")
    _take(store, data, best)
    others = [step for step in others if step.kind != BetterKind.CERTIFY]  # it has a button of its own
    if others:
        st.caption(f"Or: {plain(' '.join(map(_in_words, others)))}")


def _in_words(step: BetterStep) -> str:
    return point_state.better(step, title=title_of(step.other.detector) if step.other else None)


def _take(store: Store, data: evidence.Evidence, step: BetterStep) -> None:
    """The button that takes a step, or the link to where it is done."""
    if step.kind == BetterKind.LOWER_TARGET and step.target is not None:
        words = f"Aim at {exact_share(step.target)} instead"
        if st.button(words, type="primary", icon=":material/south:", key="tune_better"):
            policy_controls.take_rule(store, data, Policy("precision", step.target), "bounded")
            st.rerun()
    elif step.kind == BetterKind.OTHER_DETECTOR and step.other:
        words = f"Look at {label(title_of(step.other.detector))}"
        if st.button(words, type="primary", icon=":material/swap_horiz:", key="tune_better"):
            st.query_params["detector"] = step.other.detector
            st.query_params.pop("threshold", None)
            st.rerun()
    elif step.kind != BetterKind.CERTIFY:
        settle = step.kind == BetterKind.SETTLE
        name, words = ("agreement", "Settle them") if settle else ("label", "Label")
        where = {"sample": data.sample.name} if data.sample else {}
        st.page_link(shell.page(name), label=words, icon=":material/check_box:", query_params=where)

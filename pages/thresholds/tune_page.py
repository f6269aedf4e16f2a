"""Tune: see what a detector does at every threshold, choose one, save it as the operating point."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calibrate.report.sentences import figures as wording
from calibrate.report.sentences import labels
from calibrate.stats.choosing.policy import Policy
from calibrate.workflow.evidence import evidence
from calibrate.workflow.evidence.undecided import settled_at
from calibrate.workflow.tuning import operating_points
from db import Store
from pages import shell
from pages.components import evidence_choice, labels_line, unknown_models
from pages.components.text import plain
from pages.thresholds import certify_panel, policy_controls, tune_charts, tune_figures, tune_overview, tune_setting


@st.fragment
def explore(store: Store, data: evidence.Evidence, per_day: float | None, drawn: tuple[bool, bool]) -> None:
    """Everything that follows the threshold: moving it redraws this and reads no labels again.

    `drawn` is what the part above was drawn for: whether the threshold is set by hand, and which bounds.
    """
    with shell.guarded():
        setting = tune_setting.setting_for(store, data)
        stale = st.session_state.pop("tune_stale", False)  # the table of all detectors, above, shows what is saved
        if stale or drawn != (setting.by_hand, bounds()):
            st.rerun()
        tune_setting.address(setting)
        point = tune_setting.point_of(store, data, setting)
        tune_charts.show_threshold(data, setting, point)
        if setting.strength_in_force != "certified":
            tune_figures.offer_save(store, data, setting, point)
        open_ones = labels.settled_point(settled_at(data, point.threshold))
        tune_figures.show_figures(point, per_day, not_run=data.not_run, open_ones=open_ones)
        if setting.policy.kind == "elbow":
            elbow = tune_setting.once(data, "elbow", lambda: operating_points.bootstrap_elbow(data))
            steadiness, *doubts = wording.elbow(elbow)
            st.caption(plain(steadiness))
            if doubts:
                st.warning(plain(" ".join(doubts), 400), icon=":material/trending_flat:")
        show_scope(operating_points.bounded_scope(store, data, point, looks=setting.looks))
        if setting.strength_in_force == "certified" or certify_panel.under_way(store, data):
            certify_panel.show(store, data, target=setting.rule.value if setting.rule.kind == "precision" else None)
        tune_figures.show_nearby(store, data, point)


def show_scope(scope: operating_points.BoundedScope | None) -> None:
    """What a bounded precision holds for; loudly where that is not all that will be flagged."""
    *window, looks = wording.scope(scope) or [""]
    for note in window:
        st.warning(plain(note, 500), icon=":material/crop_free:")
    if looks:
        st.caption(plain(looks, 500))


def bounds() -> bool:
    """Whether the user asked for bounds that hold for all thresholds at once."""
    return bool(st.session_state.get(tune_charts.BAND, False))


def choose(store: Store, data: evidence.Evidence, live: float | None) -> tuple[bool, bool]:
    """The policy and the charts; returns what they were drawn for. They stay while the threshold moves."""
    setting = tune_setting.setting_for(store, data)
    tune_setting.tell_ignored(data)
    policy_controls.choose_policy(store, data, setting)
    ruled = tune_setting.point_of(store, data, replace(setting, by_hand=False))
    if not setting.by_hand and not ruled.feasible:
        why = wording.capitalised(wording.why(ruled) or "")
        octave = setting.strength_in_force == "bounded" and operating_points.octave_would_help(data, ruled)
        more = f" {wording.OCTAVE}" if octave else ""
        st.warning(f"{plain(why)}. Shown is that nearest point.{more}", icon=":material/block:")
    if setting.strength_in_force == "certified" and ruled.guarantee is None:
        st.info(
            "Nothing is certified here yet: below is what these labels measure, then the steps to a certificate.",
            icon=":material/verified:",
        )
    elbow = tune_setting.once(data, "elbow", lambda: operating_points.choose_point(data, Policy("elbow")))
    together = bounds()
    tune_charts.show_charts(data, tune_charts.marks_of(data, ruled, elbow, live), together=together)
    return setting.by_hand, together


with shell.page_frame(
    "Tune", "See what a detector would flag at every threshold, read the traces next to it, and choose."
) as store:
    runs = evidence_choice.configs_by_detector(store)
    if not runs:
        with st.container(border=True):
            st.markdown(
                "**No detector has scored anything yet.** Here you would see each detector's precision and recall."
            )
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    unknown_models.show(store)
    places = st.columns([2, 2, 2])
    with places[0]:
        sample = evidence_choice.choose_labels(store)
    ranked = evidence_choice.best_first(store, runs, evidence_choice.sample_names(sample))
    config = evidence_choice.choose_config(ranked, places[1:])
    labels_line.show(store, sample)
    labelled = evidence_choice.evidence_of(store, config, evidence_choice.sample_names(sample))
    tune_overview.show_facts(store, labelled)
    tune_overview.show_overview(store, ranked, evidence_choice.sample_names(sample))
    if labelled.caution is not None and not labelled.sweep.missing:
        tune_charts.show_charts(labelled, [], together=bounds())
    elif labelled.sweep.missing:
        tune_overview.show_missing(labelled)
        if certify_panel.under_way(store, labelled):
            certify_panel.show(store, labelled)
    else:
        drawn = choose(store, labelled, tune_charts.live_threshold(store, labelled))
        explore(store, labelled, tune_setting.traffic_per_day(store, labelled), drawn)

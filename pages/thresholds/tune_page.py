"""Tune: see what a detector does at every threshold, choose one, save it as the operating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from calibrate.report.sentences import figures as wording
from calibrate.report.sentences import labels
from calibrate.stats.choosing.policy import Policy
from calibrate.types import Sample
from calibrate.workflow.evidence import evidence
from calibrate.workflow.evidence.undecided import settled_at
from calibrate.workflow.tuning import operating_points
from db import Store
from db.scores import Config
from pages import shell
from pages.components import charts, evidence_choice, labels_line, unknown_models
from pages.components.text import plain
from pages.components.threshold_chart import chart
from pages.components.threshold_chart.arrays import here
from pages.shell.bar import at_hand
from pages.thresholds import (
    certify_panel,
    policy_controls,
    reliability,
    tune_charts,
    tune_figures,
    tune_overview,
    tune_setting,
)
from pages.thresholds.detector_rail import rail as detector_rail

# Three columns where there is room for them; else one below the other.
STYLE = """<style>
.stMainBlockContainer h1 {font-size: 1.15rem; padding: 0}
.stMainBlockContainer {padding-bottom: 1rem}
@media (min-width: 1151px) {
  .stMainBlockContainer {padding-left: 2.5rem; padding-right: 2.5rem}
  .st-key-tune-screen [data-testid=stVerticalBlock] {gap: .6rem}
}
.st-key-tune-screen .stMarkdown p, .st-key-tune-screen [data-testid=stCaptionContainer] p {overflow-wrap: anywhere}
@media (max-width: 1150px) {
  .st-key-tune-screen > div > [data-testid=stHorizontalBlock],
  .st-key-tune-screen > [data-testid=stHorizontalBlock] {flex-direction: column}
  .st-key-tune-screen > div > [data-testid=stHorizontalBlock] > [data-testid=stColumn],
  .st-key-tune-screen > [data-testid=stHorizontalBlock] > [data-testid=stColumn] {width: 100%; flex: 1 1 auto}
}
</style>"""


@st.fragment
def explore(store: Store, data: evidence.Evidence, per_day: float | None, drawn: bool) -> None:
    """Everything that follows the threshold where it rests: this is drawn anew, and no labels are read again.

    `drawn` is what the policies and the chart were drawn for: whether the threshold is set by hand.
    """
    with shell.guarded():
        setting = tune_setting.setting_for(store, data)
        stale = st.session_state.pop("tune_stale", False)  # the table of all detectors, below, shows what is saved
        if stale or drawn != setting.by_hand:
            st.rerun()
        tune_setting.address(setting)
        point = tune_setting.point_of(store, data, setting)
        state = tune_setting.state_of(store, data, setting, point)
        shown = here(point, per_day, state.verdict)
        chart.follow(tune_setting.name_of(setting), shown, policy_controls.take_by_hand)
        if setting.strength_in_force != "certified":
            tune_figures.offer_save(store, data, setting, point, state)
        open_ones = labels.settled_point(settled_at(data, point.threshold))
        tune_figures.show_cautions(point, not_run=data.not_run, open_ones=open_ones)
        if setting.policy.kind == "elbow":
            elbow = tune_setting.once(data, "elbow_steadiness", lambda: operating_points.bootstrap_elbow(data))
            steadiness, *doubts = wording.elbow(elbow)
            st.caption(plain(steadiness))
            if doubts:
                st.warning(plain(" ".join(doubts), 400), icon=":material/trending_flat:")
        show_scope(operating_points.bounded_scope(store, data, point, looks=setting.looks))
        tune_figures.show_nearby(store, data, point)
        with st.expander("In words, with the counts"):
            tune_figures.show_figures(point, per_day)


def show_scope(scope: operating_points.BoundedScope | None) -> None:
    """What a bounded precision holds for; loudly where that is not all that will be flagged."""
    *window, looks = wording.scope(scope) or [""]
    for note in window:
        st.warning(plain(note, 500), icon=":material/crop_free:")
    if looks:
        st.caption(plain(looks, 500))


def choose(store: Store, data: evidence.Evidence, per_day: float | None) -> Sequence[charts.Mark]:
    """The policy, and the chart with the handle: both stay while the threshold moves. Returns the chart's marks."""
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
            "Nothing is certified here yet: this is what these labels measure; the steps to a certificate are below.",
            icon=":material/verified:",
        )
    elbow = tune_setting.once(data, "elbow", lambda: operating_points.choose_point(data, Policy("elbow")))
    marks = tune_charts.marks_of(data, ruled, elbow, tune_charts.live_threshold(store, data))
    point = tune_setting.point_of(store, data, setting)
    by_hand = replace(setting, by_hand=True, threshold=point.threshold)
    moved = tune_setting.point_of(store, data, by_hand)
    beside = tune_charts.Beside(
        tune_setting.counted_traffic(store, data),
        per_day,
        tune_setting.chance(data, by_hand, moved),
        here(point, per_day, tune_setting.state_of(store, data, setting, point).verdict),
    )
    tune_charts.show_chart(data, setting, marks, beside)
    return marks


def show_details(data: evidence.Evidence, marks: Sequence[charts.Mark], name: str | None) -> None:
    """What is looked at now and then, worked out when it is opened."""
    curve = st.expander("Precision against recall, with bounds", key="tune-details-curve", on_change="rerun")
    if curve.open:
        with curve:
            tune_charts.show_curve(data, marks)
    percent = st.expander("What a score says in percent", key="tune-details-percent", on_change="rerun")
    if percent.open:
        with percent:
            reliability.show(shell.store(), data.config.name, name)


def show_rail(store: Store, runs: Mapping[str, Sequence[Config]]) -> tuple[Sample | None, evidence.Evidence]:
    """Whose labels, and which detector's scores on them; returns them read."""
    sample = at_hand.labels(store)
    names = evidence_choice.sample_names(sample)
    ranked = evidence_choice.best_first(store, runs, names)
    name = evidence_choice.detector_at_hand(ranked)
    detector_rail.show(store, ranked, sample, name)
    config = evidence_choice.choose_config(ranked[name])
    data = evidence_choice.evidence_of(store, config, names)
    labels_line.show(store, sample)
    tune_overview.show_facts(store, data)
    return sample, data


with shell.page_frame(
    "Tune", "See what a detector would flag at every threshold, read the traces next to it, and choose."
) as store:
    st.html(STYLE)
    runs = evidence_choice.configs_by_detector(store)
    if not runs:
        with st.container(border=True):
            st.markdown(
                "**No detector has scored anything yet.** Here you would see each detector's precision and recall."
            )
            st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        st.stop()
    unknown_models.show(store)
    with st.container(key="tune-screen"):
        rail, middle, right = st.columns([20, 52, 28], gap="medium")
    with rail:
        sample, labelled = show_rail(store, runs)
    names = evidence_choice.sample_names(sample)
    if labelled.sweep.missing or labelled.caution is not None:
        with middle:
            if labelled.sweep.missing:
                tune_overview.show_missing(labelled)
            else:
                tune_charts.show_without_threshold(labelled)
        if labelled.sweep.missing and certify_panel.under_way(store, labelled):
            certify_panel.show(store, labelled)
    else:
        per_day = tune_setting.traffic_per_day(store, labelled)
        with middle:
            marks = choose(store, labelled, per_day)
        setting = tune_setting.setting_for(store, labelled)
        with right:
            explore(store, labelled, per_day, setting.by_hand)
        if setting.strength_in_force == "certified" or certify_panel.under_way(store, labelled):
            target = setting.rule.value if setting.rule.kind == "precision" else None
            certify_panel.show(store, labelled, target=target)
        with middle, st.container(gap="xsmall", key="tune-details"):
            show_details(labelled, marks, sample.name if sample else None)
    with middle:
        tune_overview.show_overview(store, evidence_choice.best_first(store, runs, names), names)

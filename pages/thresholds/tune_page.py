"""Thresholds: see what a detector does at every threshold, choose one, save it as the operating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from calibrate.report.sentences.labelling import labels
from calibrate.report.sentences.tuning import figures as wording
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
from pages.components.threshold_chart.arrays import here
from pages.shell.bar import at_hand
from pages.thresholds import (
    certify_panel,
    policy_controls,
    tune_charts,
    tune_details,
    tune_figures,
    tune_overview,
    tune_setting,
    tune_verdict,
)
from pages.thresholds.detector_rail import rail as detector_rail

# One screen of three columns where there is room for them, each as tall as the screen; else one below the other. The
# bar says where this is: the heading is there for those who do not see it.
STYLE = """<style>
.stMainBlockContainer .stHeading {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
.stMainBlockContainer {padding-bottom: 1rem}
.st-key-tune-screen .stMarkdown p, .st-key-tune-screen [data-testid=stCaptionContainer] p {overflow-wrap: anywhere}
@media (min-width: 1151px) {
  .stMainBlockContainer {padding-left: 2.5rem; padding-right: 2.5rem}
  .st-key-tune-screen [data-testid=stVerticalBlock] {gap: .6rem}
  .st-key-tune-rail, .st-key-tune-right {height: max(34rem, calc(100vh - 11.5rem)); flex-wrap: nowrap; overflow-y: auto}
  .st-key-tune-right > * {flex-shrink: 0}
  .st-key-tune-right > :has(> .st-key-tune-near-list) {flex: 1 1 0; min-height: 9rem; overflow-y: auto}
}
@media (max-width: 1150px) {
  .st-key-tune-screen > div > [data-testid=stHorizontalBlock],
  .st-key-tune-screen > [data-testid=stHorizontalBlock] {flex-direction: column}
  .st-key-tune-screen > div > [data-testid=stHorizontalBlock] > [data-testid=stColumn],
  .st-key-tune-screen > [data-testid=stHorizontalBlock] > [data-testid=stColumn] {width: 100%; flex: 1 1 auto}
}
</style>"""


@st.fragment
def explore(store: Store, data: evidence.Evidence, per_day: float | None, drawn: tuple[bool, float | None]) -> None:
    """Everything that follows the threshold where it rests: this is drawn anew, and no labels are read again.

    `drawn` is what the rest of the page was drawn for.
    """
    with shell.guarded():
        setting = tune_setting.setting_for(store, data)
        stale = st.session_state.pop("tune_stale", False)  # the rail and the scoreboard show what is saved
        if stale or drawn != tune_details.drawn_for(setting):
            st.rerun()
        tune_setting.address(setting)
        point = tune_setting.point_of(store, data, setting)
        state = tune_setting.state_of(store, data, setting, point)
        tune_verdict.show(store, data, setting, point, state, per_day)
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


def show_scope(scope: operating_points.BoundedScope | None) -> None:
    """What a bounded precision holds for; loudly where that is not all that will be flagged."""
    *window, looks = wording.scope(scope) or [""]
    for note in window:
        st.warning(plain(note, 500), icon=":material/crop_free:")
    if looks:
        st.caption(plain(looks, 500))


def choose(
    store: Store, data: evidence.Evidence, per_day: float | None, others: Mapping[str, evidence.Evidence]
) -> Sequence[charts.Mark]:
    """The policy, and the chart with the handle: both stay while the threshold moves. Returns the chart's marks."""
    setting = tune_setting.setting_for(store, data)
    tune_setting.tell_ignored(data)
    policy_controls.choose_policy(store, data, setting)
    ruled = tune_setting.point_of(store, data, replace(setting, by_hand=False))
    if (
        setting.strength_in_force == "bounded"
        and not ruled.feasible
        and operating_points.octave_would_help(data, ruled)
    ):
        st.caption(f"Shown is the nearest point. {wording.OCTAVE}")
    if setting.strength_in_force == "certified" and ruled.guarantee is None:
        st.caption("Nothing is certified here yet: this is what these labels measure.")
    elbow = tune_setting.once(data, "elbow", lambda: operating_points.choose_point(data, Policy("elbow")))
    marks = tune_charts.marks_of(data, ruled, elbow, tune_charts.live_threshold(store, data))
    point = tune_setting.point_of(store, data, setting)
    by_hand = replace(setting, by_hand=True, threshold=point.threshold)
    moved = tune_setting.point_of(store, data, by_hand)
    beside = tune_charts.Beside(
        tune_setting.counted_traffic(store, data),
        per_day,
        tune_setting.chance(data, by_hand, moved),
        here(point, per_day, tune_setting.state_of(store, data, setting, point)),
        others,
    )
    tune_charts.show_chart(data, setting, marks, beside)
    return marks


def show_rail(
    store: Store, ranked: Mapping[str, Sequence[Config]], sample: Sample | None
) -> tuple[evidence.Evidence, list[str]]:
    """Which detector's scores: returns them read, and the detectors to lay over them."""
    name = evidence_choice.detector_at_hand(ranked)
    overlaid = detector_rail.show(store, ranked, sample, name)
    config = evidence_choice.choose_config(ranked[name])
    data = evidence_choice.evidence_of(store, config, evidence_choice.sample_names(sample))
    labels_line.show(store, sample)
    tune_overview.show_facts(store, data)
    unknown_models.show(store, links=False)
    return data, overlaid


def certify(store: Store, data: evidence.Evidence) -> None:
    """The steps to a certificate, in the place of the chart."""
    if st.button("Back to the threshold", type="tertiary", icon=":material/arrow_back:"):
        st.query_params.pop(tune_verdict.VIEW)
        st.rerun()
    rule = None if data.sweep.missing else tune_setting.setting_for(store, data).rule
    certify_panel.show(store, data, target=rule.value if rule and rule.kind == "precision" else None)


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
    sample = at_hand.labels(store)
    names = evidence_choice.sample_names(sample)
    ranked = evidence_choice.best_first(store, runs, names)
    certifying = st.query_params.get(tune_verdict.VIEW) == tune_verdict.CERTIFY
    with st.container(key="tune-screen"):
        rail, middle, *more = st.columns([20, 80] if certifying else [20, 52, 28], gap="medium")
    with rail, st.container(key="tune-rail"):
        data, overlaid = show_rail(store, ranked, sample)
    can_choose = not data.sweep.missing and data.caution is None
    marks, per_day = None, None
    if certifying:
        with middle:
            certify(store, data)
    elif not can_choose:
        with middle:
            if data.sweep.missing:
                tune_overview.show_missing(data)
            else:
                tune_charts.show_without_threshold(data)
            if certify_panel.under_way(store, data):
                tune_verdict.show_certificate(store, data, primary=False)
    else:
        per_day = tune_setting.traffic_per_day(store, data)
        others = {name: evidence_choice.evidence_of(store, ranked[name][-1], names) for name in overlaid}
        with middle:
            marks = choose(store, data, per_day, others)
        with more[0], st.container(key="tune-right"):
            explore(store, data, per_day, tune_details.drawn_for(tune_setting.setting_for(store, data)))
    if not certifying:
        tune_details.show(store, tune_details.Beneath(data, marks, per_day, sample, ranked, overlaid))

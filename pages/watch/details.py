"""Watch's Details: charts and tables behind the rows, one view at a time, named in the address."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.labelling import kinds as kind_sentences
from calibrate.report.sentences.watching import drift as sentences
from calibrate.workflow.labelling import guides
from calibrate.workflow.releasing.by_segment import released_figures_by_kind
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.week.standing import Standing
from db import Store
from db.releases import Release
from pages.components import evidence_choice, labels_line
from pages.components.text import plain
from pages.shell.bar import at_hand
from pages.watch import drift_report, flags_chart, model_traffic

VIEWS: Mapping[str, str] = {"drift": "Drift", "models": "Models", "kinds": "Kinds of error", "flags": "Flags a day"}
EVERY = "All detectors"
_KEY = "watch_details"


def open_view(view: str, *, detector: str | None = None) -> None:
    """Open a view when the page is drawn next."""
    st.session_state.pop(_KEY, None)
    st.session_state.pop("drift_detector", None)
    st.query_params["details"] = view
    if detector:
        st.query_params["detector"] = detector


def show(store: Store, standing: Standing, release: Release) -> None:
    """The chooser, and the view that is open; none is until somebody asks for one."""
    requested = st.query_params.get("details")
    view = st.segmented_control(
        "Details", list(VIEWS), format_func=VIEWS.__getitem__, key=_KEY,
        default=requested if requested in VIEWS else None,
    )  # fmt: skip
    if view is None:
        st.query_params.pop("details", None)
        return
    st.query_params["details"] = view
    if view == "drift":
        _drift(standing)
    elif view == "models":
        models(store)
    elif view == "kinds":
        _kinds(store, release)
    else:
        flags_chart.show(store, release.version)


def show_models_alone(store: Store) -> None:
    """What is known before the first release: the models that answer."""
    with st.expander("Models", expanded=st.query_params.get("details") == "models"):
        models(store)


def _drift(standing: Standing) -> None:
    """Whether scores moved: the verdict, charts of both windows, and every test."""
    report = standing.report
    if report is None:
        return
    st.markdown(f"**{plain(sentences.verdict(report), 600)}**")
    drift_report.show_facts(report)
    if not report.lines:
        return
    names = list(dict.fromkeys(line.detector for line in report.lines))
    chosen = EVERY
    if len(names) > 1:
        requested = st.query_params.get("detector")
        options = [EVERY, *names]
        left, _ = st.columns([1, 2])
        chosen = left.selectbox(
            "Detector", options, index=options.index(requested) if requested in options else 0,
            format_func=lambda name: name if name == EVERY else title_of(name), key="drift_detector",
        )  # fmt: skip
        if chosen == EVERY:
            st.query_params.pop("detector", None)
        else:
            st.query_params["detector"] = chosen
    lines = report.lines if chosen == EVERY else report.of(chosen)
    drift_report.show_charts(lines)
    with st.expander("All tests, with their figures", expanded=not any(line.bins for line in lines)):
        drift_report.show_table(lines)


def models(store: Store) -> None:
    """Which model and which prompt answered when, and how often each hallucinated."""
    left, _ = st.columns([1, 2])
    with left:
        by = model_traffic.choose_by(store)
    sample = at_hand.labels(store)
    labels_line.show(store, sample)
    registry = model_traffic.load(store, by, evidence_choice.sample_names(sample))
    model_traffic.show_step(registry)
    model_traffic.show_traffic(registry)
    model_traffic.show_table(registry)


def _kinds(store: Store, release: Release) -> None:
    """What each live threshold finds of every kind of error, on the labels at hand."""
    names = {kind.key: kind.name for kind in guides.known_kinds(store)}
    sample = at_hand.labels(store)
    labels_line.show(store, sample)
    findings = []
    for name, entry in sorted(read_release(release).detectors.items()):
        released = (entry.version, dict(entry.params), entry.revision)
        configs = evidence_choice.configs_by_detector(store).get(name, [])
        config = next((run for run in configs if (run.version, dict(run.params), run.revision) == released), None)
        if entry.tier == "off" or config is None:
            continue
        data = evidence_choice.evidence_of(store, config, evidence_choice.sample_names(sample))
        figures = released_figures_by_kind(store, entry, data)
        if sentence := kind_sentences.sentence(title_of(name), figures, names):
            findings.append(f"{sentence}.")
    for sentence in findings:
        st.markdown(plain(sentence, 700))
    if findings:
        st.caption(f"{kind_sentences.NOTE}.")
    else:
        st.caption("No label at hand names a kind of error: labellers choose one after Hallucinated.")

"""Drift: whether the scores of the released detectors moved since the window that the release was made on."""

from __future__ import annotations

import streamlit as st

from calibrate.report.sentences import drift as sentences
from calibrate.report.weekly_html import urgency
from calibrate.workflow.watching.drift_report import Report
from db import Store
from pages import shell
from pages.components import unknown_models
from pages.components.text import plain
from pages.watch import drift_report, unreleased

EVERY = "All detectors"


def verdict(report: Report) -> None:
    """The verdict and what to do next."""
    urgent = bool(report.moved)
    lacking = [line for line in report.lines if line.state in ("not scored", "partly scored")]
    with st.container(border=True):
        quiet = report.traces and not lacking
        icon = ":material/warning:" if urgent else ":material/check:" if quiet else ":material/info:"
        st.markdown(f"### {icon} {plain(sentences.verdict(report), 600)}")
        with st.container(horizontal=True):
            if not report.traces:
                _go("Import traces", "import", ":material/upload:", first=True)
            if lacking:
                _go("Score the traffic", "detect", ":material/play_circle:", first=True)
            if urgent:
                first = min(report.moved, key=urgency)
                which = {"detector": first.detector, **({"model": first.model} if first.model != "(none)" else {})}
                _go("Recheck what is flagged", "recheck", ":material/fact_check:", first=not lacking, which=which)
                _go("Recalibrate", "recalibrate", ":material/autorenew:", first=False)


def _go(text: str, key: str, icon: str, *, first: bool, which: dict[str, str] | None = None) -> None:
    if st.button(text, type="primary" if first else "secondary", icon=icon, key=f"drift-go-{key}"):
        st.switch_page(shell.page(key), query_params=which)


def show(store: Store) -> None:
    report = drift_report.load(store)
    verdict(report)
    drift_report.show_facts(report)
    if not report.lines:
        unknown_models.show(store, links=False)
        return
    names = list(dict.fromkeys(line.detector for line in report.lines))
    chosen = EVERY
    if len(names) > 1:
        requested = st.query_params.get("detector")
        options = [EVERY, *names]
        left, _ = st.columns([1, 2])
        with left:
            chosen = st.selectbox("Detector", options, index=options.index(requested) if requested in options else 0)
        if chosen == EVERY:
            st.query_params.pop("detector", None)
        else:
            st.query_params["detector"] = chosen
    lines = report.lines if chosen == EVERY else report.of(chosen)
    drift_report.show_charts(lines)
    with st.expander("All tests, with their figures", expanded=not any(line.bins for line in lines)):
        drift_report.show_table(lines)


with shell.page_frame(
    "Drift", "Have the scores moved since the release? This needs no labels: it compares windows of traffic."
) as opened:
    if opened.releases.list():
        show(opened)
    else:
        unreleased.show(
            "Once thresholds are live, this page says whether the scores they were chosen on still look the same."
        )

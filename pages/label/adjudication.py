"""Adjudication: a trace with everybody's verdict, and the buttons that decide its gold. Names are shown."""

from __future__ import annotations

import time

import streamlit as st

from calibrate.report.numbers import ago, count
from calibrate.types import Label, Verdict
from calibrate.workflow.labelling import agreement as step
from db import Store
from pages import shell
from pages.components.labelling import label_surface, trace_card
from pages.components.labelling.verdict_bar import BUTTONS
from pages.components.text import plain, visible

HEIGHT = "26rem"
EARLY = 0.4  # seconds; a press this soon was meant for the trace before
COLOURS = {"hallucinated": "orange", "clean": "blue", "unsure": "gray"}


def show_disputed(store: Store, report: step.AgreementReport) -> None:
    """The disputed traces on the labelling surface."""
    reopened = st.session_state.get("agree_again")
    if reopened is not None:
        st.button("To the next dispute", icon=":material/arrow_forward:", on_click=_reopen, args=(None,))
        bench(store, reopened)
        return
    if not report.disputed:
        so_far = f" {count(report.adjudicated, 'trace')} adjudicated so far." if report.adjudicated else ""
        st.markdown(f"**Nothing is disputed.**{so_far}")
        st.caption(
            "A trace that one person calls clean and another hallucinated waits here. Until it is decided, no detector "
            "is measured on it."
        )
        return
    st.markdown(
        f"**{count(len(report.disputed), 'trace')} to decide.** Until then no detector is measured on them.",
        width="content",
    )
    if label_surface.show(store, label_surface.Disputes(report.sample)) == "over":
        st.rerun()


def bench(store: Store, pk: int) -> None:
    """The trace, everybody's verdict, and the decision."""
    stored, labels = store.traces.get(pk), store.labels.of_trace(pk)
    if stored is None:
        return
    if st.session_state.get("agree_shown", (None, 0.0))[0] != pk:
        st.session_state["agree_shown"] = (pk, time.monotonic())
    with st.container(gap="xsmall"):
        for label in _latest(labels):
            _line(label)
    with st.container(horizontal=True, vertical_alignment="bottom", key="agree-bar"):
        for verdict, text, _ in BUTTONS:
            st.button(text, key=f"agree-{verdict}-{pk}", on_click=_decide, args=(store, pk, stored.trace.id, verdict))
        st.text_input(
            "Why (optional)", key=f"agree-note-{pk}", max_chars=2000, placeholder="Why (optional)",
            label_visibility="collapsed",
        )  # fmt: skip
    spans = [span for label in _latest(labels) for span in label.spans]
    trace_card.show(stored.trace, spans=spans, height=HEIGHT, key="agree-card")


def show_decided() -> None:
    """What the last press did and how to change it, or why it did nothing."""
    shell.show_kept_error("agree_problem")
    decided = st.session_state.get("agree_decided")
    if decided is None:
        return
    pk, trace_id, verdict = decided
    with st.container(horizontal=True, vertical_alignment="center", key="agree-decided"):
        st.markdown(f":material/check: Gold of **{plain(trace_id, 60)}** is **{verdict}**, saved", width="content")
        st.button("Change it", type="tertiary", icon=":material/undo:", on_click=_reopen, args=(pk,))


def _latest(labels: list[Label]) -> list[Label]:
    """The latest label of each labeller and each adjudicator, adjudications last."""
    last = {(label.labeller, label.adjudicates): label for label in labels}
    return sorted(last.values(), key=lambda label: label.adjudicates)


def _line(label: Label) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(label.verdict, color=COLOURS[label.verdict])  # type: ignore[arg-type]
        st.markdown(f"**{plain(label.labeller)}**" + (" decided" if label.adjudicates else ""), width="content")
        about = ", ".join(trace_card.kind_in_words(kind) for kind in label.kinds)
        when = ago(label.created_at, shell.now()) if label.created_at else ""
        st.text(" · ".join(part for part in (about, when, visible(label.note, 500)) if part), width="stretch")


def _decide(store: Store, pk: int, trace_id: str, verdict: Verdict) -> None:
    showing, since = st.session_state["agree_shown"]
    if showing != pk or time.monotonic() - since < EARLY:
        return
    note = str(st.session_state.get(f"agree-note-{pk}") or "").strip() or None
    with shell.errors_kept("agree_problem"):
        step.adjudicate(store, pk, verdict, by=shell.user(), now=shell.now(), note=note)
        st.session_state["agree_decided"] = (pk, trace_id, verdict)
        st.session_state["agree_again"] = None


def _reopen(pk: int | None) -> None:
    st.session_state["agree_again"] = pk
    if pk is not None:
        st.session_state["agree_decided"] = None
        st.session_state["agree_view"] = "disputed"

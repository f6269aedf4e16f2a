"""Agreement: how far labellers agree, what they dispute, and which labels deserve a second look."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.workflow.labelling import agreement as step
from pages import shell
from pages.label import adjudication, agreement_report
from pages.shell.bar import at_hand

VIEWS = {"disputed": "Disputed", "second": "Second look", "errors": "If labellers err"}

with shell.page_frame(
    "Disputes", "How far labellers agree, what they dispute, and which labels deserve a second look."
) as store:
    sample = at_hand.labelled_by_several(store)
    report = step.look(store, sample.name if sample else None)
    if report.pairs:
        agreement_report.show_figures(report)
        agreement_report.offer_double(store, report)
    else:
        agreement_report.show_nothing_yet(store, report)
    adjudication.show_decided()
    if not store.labels.labellers():
        st.stop()
    # A widget's state ends with its page; the address keeps it.
    requested = st.query_params.get("view")
    usual = "disputed" if report.disputed else "second"
    st.session_state.setdefault("agree_view", requested if requested in VIEWS else usual)
    waiting = f" ({count(len(report.disputed))})" if report.disputed else ""
    view = st.segmented_control(
        "View",
        list(VIEWS),
        required=True,
        format_func=lambda key: VIEWS[key] + (waiting if key == "disputed" else ""),
        key="agree_view",
        label_visibility="collapsed",
    )
    st.query_params["view"] = str(view)
    if view == "disputed":
        adjudication.show_disputed(store, report)
    elif view == "second":
        agreement_report.show_second_look(store, report)
    else:
        agreement_report.show_sensitivity(store, report)

"""Agreement: how far labellers agree, what they dispute, and which labels deserve a second look."""

from __future__ import annotations

import streamlit as st

from calibrate.workflow.labelling import agreement as step
from pages import shell
from pages.label import adjudication, agreement_report

VIEWS = {"disputed": "Disputed", "second": "Second look", "errors": "If labellers err"}

with shell.page_frame(
    "Agreement", "How far labellers agree, what they dispute, and which labels deserve a second look."
) as found:
    with st.columns([2, 3])[0]:
        sample = agreement_report.choose_labels(found)
    seen = step.look(found, sample.name if sample else None)
    if seen.pairs:
        agreement_report.show_figures(seen)
        agreement_report.offer_double(found, seen)
    else:
        agreement_report.show_nothing_yet(found, seen)
    adjudication.show_decided()
    if not found.labels.labellers():
        st.stop()
    # A widget's state ends with its page; the address keeps it.
    wanted = st.query_params.get("view")
    usual = "disputed" if seen.disputed else "second"
    st.session_state.setdefault("agree_view", wanted if wanted in VIEWS else usual)
    waiting = f" ({len(seen.disputed):,})" if seen.disputed else ""
    view = st.segmented_control(
        "View",
        list(VIEWS),
        required=True,
        format_func=lambda key: VIEWS[key] + (waiting if key == "disputed" else ""),
        key="agree_view",
        label_visibility="collapsed",
    )
    st.query_params["view"] = view
    if view == "disputed":
        adjudication.show_disputed(found, seen)
    elif view == "second":
        agreement_report.show_second_look(found, seen)
    else:
        agreement_report.show_sensitivity(found, seen)

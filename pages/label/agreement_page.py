"""Agreement: how far labellers agree, what they dispute, and which labels deserve a second look."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.workflow.labelling import agreement as step
from pages import shell
from pages.label import adjudication, agreement_report, flag_list, second_look
from pages.shell.bar import at_hand

VIEWS = {"disputed": "Disputes", "second": "Second look", "errors": "If labellers err"}

with shell.page_frame(
    "Disputes", "How far labellers agree, what they dispute, and which labels deserve a second look."
) as store:
    sample = at_hand.labelled_by_several(store)
    report = step.look(store, sample.name if sample else None)
    # A widget's state ends with its page; the address keeps it.
    requested = st.query_params.get("view")
    st.session_state.setdefault("agree_view", requested if requested in VIEWS else "disputed")
    waiting = f" ({count(len(report.disputed))})" if report.disputed else ""
    view: str | None = "disputed"
    if store.labels.labellers():
        view = st.segmented_control(
            "View",
            list(VIEWS),
            required=True,
            format_func=lambda key: VIEWS[key] + (waiting if key == "disputed" else ""),
            key="agree_view",
            label_visibility="collapsed",
        )
        st.query_params["view"] = str(view)
    shell.show_kept_error("agree_problem")
    if view == "second":
        second_look.show(store, report)
    elif view == "errors":
        agreement_report.show_sensitivity(store, report)
    else:  # what is to be done first, then how things stand
        if store.labels.labellers():
            adjudication.show_disputed(store, report)
        flag_list.show(store)
        if report.pairs:
            agreement_report.show_figures(report)
        else:
            agreement_report.show_nothing_yet(store, report)
        agreement_report.show_against_gold(store, report)
        agreement_report.show_themselves(store, report)
        if report.pairs:
            agreement_report.offer_double(store, report)
            agreement_report.show_details(report)

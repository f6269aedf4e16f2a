"""Adjudication: a trace with everybody's verdict, and the keys that decide its gold. Names are shown."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.workflow.labelling import agreement as step
from db import Store
from pages.components.labelling import label_surface


def show_disputed(store: Store, report: step.AgreementReport) -> None:
    """The disputed traces on the labelling surface."""
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

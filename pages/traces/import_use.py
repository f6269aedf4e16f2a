"""What a file that is not imported yet can be used for: how far its fields are filled, and which detectors can run."""

from __future__ import annotations

import streamlit as st

from calibrate.ingest import Preview
from calibrate.ingest.inspection.profile import FIELDS, MORE_FIELDS
from calibrate.report.numbers import count
from calibrate.report.sentences.traces.imports import benchmark, can_run, field_name, filled, waits_for
from calibrate.report.sentences.tuning.figures import capitalised
from calibrate.workflow.detection.usable import by_missing, usable
from pages.components.text import plain


def show_use(parsed: Preview) -> None:
    """One line, and the details for who wants them."""
    profile = parsed.profile
    if parsed.problem or not profile.n:
        return
    rows = usable(profile)
    with st.expander(can_run(rows, looked_at=profile.n, is_whole=parsed.is_whole)):
        names = (*FIELDS, *MORE_FIELDS)
        shares = [
            {"Field": field_name(name), "Filled": filled(profile, name), "Traces": profile.filled.get(name, 0)}
            for name in names
        ]
        able = [{"Detector": row.title, "Can score": count(row.able)} for row in rows if row.able]
        left, right = st.columns(2)
        left.dataframe(shares, hide_index=True, height="content")
        right.dataframe(able, hide_index=True, height="content")
        for name, waiting in by_missing(rows).items():
            st.caption(plain(waits_for(name, waiting), 700))
    if parsed.is_benchmark and profile.filled.get("label"):
        st.caption(f":material/info: {plain(capitalised(benchmark(parsed.title)), 400)}.")

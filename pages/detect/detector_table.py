"""Every detector in a row: what it has scored of these traces, how fast, and whether it can run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from calibrate.report.numbers import count, listed
from calibrate.workflow.detection.detectors import Coverage, Measured, Overview
from pages.components.text import visible

SEEN = 9  # rows; the rest scrolls
TABLE = "detectors_table"


def choose(rows: Sequence[Overview]) -> Overview:
    """Show the table; returns the selected row, which is also kept in the address. The first by default."""
    names = [row.detector.name for row in rows]
    requested = st.query_params.get("detector") or st.session_state.get("detector_at_hand")
    place = names.index(requested) if requested in names else 0
    event = st.dataframe(
        [cells(row) for row in rows],
        hide_index=True,
        placeholder="–",
        column_config=_COLUMNS,
        height=40 + 35 * min(len(rows), SEEN),
        key=TABLE,
        on_select="rerun",
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [place]}},
    )
    selected: Mapping[str, Any] = event["selection"]
    place = int((selected["rows"] or [place])[0])
    st.session_state["detector_at_hand"] = st.query_params["detector"] = names[place]
    return rows[place]


def why_not(covered: Coverage, most: int = 3) -> str:
    """The reasons for missing scores: "no sources (12), a refusal (3) and 2 more"."""
    waiting = {"not run yet": covered.waiting} if covered.waiting else {}
    return listed([f"{reason} ({count(n)})" for reason, n in {**waiting, **covered.why}.items()], most)


def speed(last: Measured | None) -> float | None:
    """Traces a second, in three digits; None before the first run."""
    if last is None:
        return None
    return round(last.rate, 2 - math.floor(math.log10(last.rate))) if last.rate else 0.0


_COLUMNS: dict[str, Any] = {
    "Detector": st.column_config.TextColumn(width=175),
    "Model": st.column_config.TextColumn(width=115, help="Whether it can run here"),
    "Coverage": st.column_config.NumberColumn(
        width=85, format="percent", help="Share of these traces that it scored, with the settings it last ran with"
    ),
    "Scored": st.column_config.NumberColumn(width=75, format="localized"),
    "Traces/s": st.column_config.NumberColumn(
        width=80, format="localized", help="Measured in the last run that scored anything"
    ),
    "Why not scored": st.column_config.TextColumn(width=520),
}


def cells(row: Overview) -> dict[str, Any]:
    covered, ran = row.coverage, row.config is not None
    return {
        "Detector": visible(row.detector.title, 60),
        "Model": row.status.state,
        "Coverage": None if covered.share is None or not ran else round(covered.share, 2),
        "Scored": covered.scored if ran else None,
        "Traces/s": speed(row.measured),
        "Why not scored": visible(why_not(covered), 300) if ran else "not run yet",
    }

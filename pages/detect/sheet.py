"""The sheet of one detector: what it measures and has scored, its settings, what a run takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.workflow.detection import detectors as step
from db import Store
from pages import shell
from pages.detect import detector_detail

REQUESTED = "detect_sheet"  # in the session: whose sheet is to be opened


def ask(name: str) -> None:
    st.session_state[REQUESTED] = name


def show(store: Store, scope: Mapping[str, Any]) -> None:
    """Open the sheet that somebody asked for."""
    name = st.session_state.pop(REQUESTED, None)
    if name is not None:
        _sheet(store, str(name), dict(scope))


@st.dialog("Detector", width="large", position="right", on_dismiss="rerun")
def _sheet(store: Store, name: str, scope: dict[str, Any]) -> None:
    overview = next(row for row in step.overview(store, scope) if row.detector.name == name)
    detector_detail.show(store, overview, shell.now())
    try:
        detector = detector_detail.settings(overview.detector)
        detector_detail.show_takes(store, detector, scope)
    except TouchstoneError as error:
        shell.show_error(error)
    st.page_link(
        shell.page("detectors"),
        label="Its page: prompt, lists and prices, two settings compared",
        icon=":material/open_in_full:",
        query_params={"detector": name},
    )

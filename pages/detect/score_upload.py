"""The form that imports a file of scores: its name, the column, a look at the first rows, one button."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.report.numbers import count
from calibrate.report.sentences.traces import scores as sentences
from calibrate.types import FlagWhen
from calibrate.workflow.detection import score_files as step
from db import Store
from pages import shell
from pages.components.text import plain, visible

FILE, OUTCOME, PROBLEM, ROUND = "scores_file", "scores_outcome", "scores_problem", "scores_round"
LATER = "Say it later"
SIDES: dict[str, FlagWhen | None] = {"Low scores": "below", "High scores": "above", LATER: None}
MOST_SHOWN = 8


def show(store: Store) -> None:
    outcome: step.ImportedScores | None = st.session_state.get(OUTCOME)
    with st.expander("Import scores", icon=":material/upload:", expanded=outcome is not None):
        shell.show_kept_error(PROBLEM)
        if outcome is not None:
            _report(outcome)
        key = f"scores_upload_{st.session_state.get(ROUND, 0)}"
        upload = st.file_uploader(
            "CSV, JSON lines or Parquet, one score a row, by trace id or with the answer it is about", key=key
        )
        if upload is None:
            return
        path = _spool(upload)
        try:
            _form(store, path)
        except TouchstoneError as error:
            shell.show_error(error)


def _form(store: Store, path: Path) -> None:
    look = step.look_at(path)
    name = st.text_input("Name of the detector", value=look.name, key=f"scores_name_{path}", width=340).strip()
    places = look.columns
    at = places.index(look.score) if look.score in places else None
    column = st.selectbox(
        "Column of the score", places, index=at, format_func=lambda column: visible(column, 60), width=340
    )
    if not name or column is None:
        return
    columns = {"score": column}
    preview = step.preview(path, name, columns)
    st.dataframe([_row(row) for row in preview.rows], hide_index=True)
    for error in preview.errors:
        st.caption(f":material/warning: Line {error.line}: {plain(sentences.rejected(error), 300)}")
    stored = store.external.find(name)
    side: FlagWhen | None = None
    if stored is None or stored.flag_when is None:
        answer = st.segmented_control(sentences.QUESTION, list(SIDES), default=LATER, required=True, key="scores_side")
        side = SIDES[answer or LATER]
    st.button(
        "Import scores",
        type="primary",
        icon=":material/upload:",
        key="scores_import",
        disabled=not preview.rows,
        on_click=_import,
        args=(store, path, name, columns, side),
    )


def _import(store: Store, path: Path, name: str, columns: dict[str, str], side: FlagWhen | None) -> None:
    with shell.errors_kept(PROBLEM):
        st.session_state[OUTCOME] = step.import_scores(
            store, path, name, flag_when=side, columns=columns, now=shell.now()
        )
        st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
        st.session_state.pop(FILE, None)


def _report(outcome: step.ImportedScores) -> None:
    with st.container(border=True):
        st.markdown(f"**{plain(sentences.taken(outcome.taken), 200)}**")
        if outcome.taken.differing:
            st.caption(plain(sentences.differing(outcome.taken.differing), 300))
        low, high = outcome.detector.low, outcome.detector.high
        for error in outcome.errors[:MOST_SHOWN]:
            st.caption(f"Line {error.line}: {plain(sentences.rejected(error, low, high), 300)}")
        if outcome.rejected > MOST_SHOWN:
            st.caption(f"… and {count(outcome.rejected - MOST_SHOWN)} more rows were rejected.")
        if outcome.detector.flag_when is not None and outcome.taken.name:
            st.page_link(
                shell.page("tune"),
                label="Choose its threshold",
                icon=":material/arrow_forward:",
                query_params={"detector": outcome.taken.name},
            )


def _row(row: step.PreviewRow) -> dict[str, Any]:
    return {
        "Line": row.line,
        "Trace": visible(row.trace_id, 60) if row.trace_id else "by its answer",
        "Score": row.value,
        "Reason": visible(row.reason or "", 120),
    }


def _spool(upload: Any) -> Path:
    """The uploaded file on this machine, written once."""
    spooled = st.session_state.get(FILE)
    if spooled is None or spooled[0] != upload.file_id:
        folder = tempfile.TemporaryDirectory(prefix="touchstone-scores-")
        path = Path(folder.name) / (Path(upload.name).name or "scores")
        path.write_bytes(upload.getbuffer())
        spooled = st.session_state[FILE] = (upload.file_id, path, folder)
    path = spooled[1]
    assert isinstance(path, Path)
    return path

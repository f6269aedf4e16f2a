"""Choosing files to import, and which of their columns is what."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calibrate import settings
from calibrate.errors import TouchstoneError
from calibrate.ingest import Preview, Record, preview
from calibrate.ingest.formats import formats
from calibrate.ingest.record import RECORD_FIELDS
from calibrate.report.numbers import count, decimals, stamp
from calibrate.report.sentences.traces.imports import QUESTION
from calibrate.stats.sampling.designs import FEEDBACK, FLAGGED_ONLY
from calibrate.targets import check_inside
from calibrate.workflow.traces.import_labelled import labeller_of
from pages import shell
from pages.components.text import plain, visible
from pages.traces.import_job import ImportFile, Labels
from pages.traces.import_use import show_use

UPLOAD, PATH = "Upload", "A file on this machine"
MAIN_FIELDS = ("question", "context", "answer")
MORE_FIELDS = ("sources", "trace_id", "timestamp", "model", "operation", "label")
MOST_LOOKED_AT = 10
NO_COLUMN = "not in this file"
UNKNOWN = "unknown"
CHOSEN = {
    UNKNOWN: ("I don't know", "They choose no threshold, unless every trace has a label."),
    "random": ("At random, from all traffic", "They describe the traffic and can choose thresholds."),
    FLAGGED_ONLY: ("A detector or a rule flagged them", "They can be read, and detectors compared on them."),
    FEEDBACK: ("Users complained, or somebody picked them", "They can be read, and detectors compared on them."),
}


def choose_files() -> list[ImportFile]:
    """The files that were uploaded or named, as paths on this machine."""
    folder, origin = settings.files_folder(), UPLOAD
    if folder:
        ways = [UPLOAD, PATH]
        origin = st.segmented_control("Where are the traces?", ways, default=UPLOAD, required=True, key="import_way")
    if folder is None or origin == UPLOAD:
        key = f"import_files_{st.session_state.get('import_round', 0)}"
        st.file_uploader("Trace files", accept_multiple_files=True, key=key, label_visibility="collapsed")
        # Streamlit returns the files that it still holds; the state names those, too, that were taken over.
        return [_spooled(upload) for upload in st.session_state[key] or []]
    name = st.text_input(
        "Path", key="import_path", placeholder=f"a file in {folder}", label_visibility="collapsed"
    ).strip()
    return [ImportFile(Path(name).name, check_inside(name, folder))] if name else []


def look(files: list[ImportFile], format: str) -> tuple[list[ImportFile], bool, bool]:
    """Show the beginning of each file and ask for its columns where they are in doubt.

    Returns the files with their columns, whether they can be imported, and whether any holds labels.
    """
    ready, able, labels = [], True, False
    for number, file in enumerate(files):
        if number >= MOST_LOOKED_AT:
            ready.append(replace(file, format=format))
            continue
        with st.container(border=True, key=f"import_look_{number}"):
            try:
                parsed = preview(file.path, format=format)
                about = f"recognised as {plain(parsed.title, 80)}, {_size(file.path)}"
                st.markdown(f"**{plain(file.name, 120)}** &ensp; :gray[{about}]")
                columns = _columns(parsed, number) if _in_doubt(parsed) else None
                checked = parsed if columns is None else preview(file.path, format=format, columns=columns)
            except TouchstoneError as error:
                shell.show_error(type(error)(str(error).replace(str(file.path), file.name)))
                able = False
                continue
            _show(checked)
            show_use(checked)
            able = able and checked.problem is None
            labels = labels or any(isinstance(record, Record) and record.labels for record in checked.records)
            ready.append(replace(file, format=checked.format, columns=columns))
    if len(files) > MOST_LOOKED_AT:
        st.caption(f"{count(len(files) - MOST_LOOKED_AT, 'more file')}, read like the others by their own columns.")
    return ready, able, labels


def choose_about_labels(files: list[ImportFile]) -> Labels:
    """Whether to keep the labels in the files, as whose, and how their traces were chosen."""
    with st.container(border=True):
        if not st.toggle("Keep the labels in these files", value=True, key="import_labels"):
            return Labels(keep=False)
        usual = visible(labeller_of(files[0].name), 60) if len(files) == 1 else "each file's name"
        name = st.text_input("As the labels of", placeholder=usual, width=480, key="import_labeller").strip()
        design = st.radio(
            QUESTION,
            list(CHOSEN),
            format_func=lambda key: CHOSEN[key][0],
            captions=[caption for _, caption in CHOSEN.values()],
            key="import_design",
        )
        return Labels(True, name or None, None if design == UNKNOWN else design, by=shell.user())


def format_names() -> dict[str, str]:
    """What people call each format, by its name."""
    return {"auto": "By what the file holds", **{format.name: format.title or format.name for format in formats()}}


def _spooled(upload: Any) -> ImportFile:
    """The upload as a file, written once per session: reading it takes a path. Streamlit's copy in memory is dropped,
    which it would keep until the session ends."""
    spooled: dict[str, ImportFile] = st.session_state.setdefault("import_spooled", {})
    if upload.file_id not in spooled:
        folder, path = _place(Path(upload.name).name[-100:] or "upload", list(spooled.values()))
        upload.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(upload, file, 1 << 20)
        spooled[upload.file_id] = ImportFile(upload.name, path, keep=folder)
        upload.close()
        context = get_script_run_ctx()
        if context and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
            context.uploaded_file_mgr.remove_file(context.session_id, upload.file_id)
    return spooled[upload.file_id]


def _place(name: str, others: list[ImportFile]) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Where an upload goes: beside the others, as some data sets come in two files; elsewhere if one has its name."""
    for other in others:
        if other.keep is not None and not (path := Path(other.keep.name) / name).exists():
            return other.keep, path
    folder = tempfile.TemporaryDirectory(prefix="touchstone-upload-")
    return folder, Path(folder.name) / name


def _in_doubt(parsed: Preview) -> bool:
    """Whether to ask: tables name their columns as they please, JSON only if it has no answer. What other systems
    export has its fields in their places, and offers no columns."""
    return bool(parsed.columns) and (parsed.format in ("csv", "parquet") or "answer" not in parsed.columns)


def _columns(parsed: Preview, number: int) -> dict[str, str]:
    """Ask which column holds which field, with a guess."""
    st.markdown("Which column is what?")
    names = ["", *parsed.columns]
    chosen = {}
    fields = [*MAIN_FIELDS, *MORE_FIELDS]
    for start in range(0, len(fields), 3):
        for column, field in zip(st.columns(3), fields[start : start + 3], strict=True):
            likely = parsed.suggested.get(field, "")
            with column:
                name = st.selectbox(
                    field.replace("_", " ").capitalize(),
                    names,
                    index=names.index(likely),
                    format_func=lambda name: visible(name, 60) or NO_COLUMN,
                    key=f"import_{number}_{field}_{hash(parsed.columns)}",
                )
            if name:
                chosen[field] = name
    unused = (name for name in parsed.columns if name not in chosen.values() and name.lower() not in RECORD_FIELDS)
    rest = [visible(name, 40) for name in unused]
    if rest:
        st.caption(f"Kept as attributes: {plain(', '.join(rest[:12]), 500)}{' …' if len(rest) > 12 else ''}")
    return chosen


def _show(parsed: Preview) -> None:
    if parsed.problem:
        shell.show_error(TouchstoneError(parsed.problem))
        return
    widths = {"Trace": 130, "Question": 220, "Answer": 300, "Given": 85, "Time": 130, "Model": 110, "Label": 95}
    columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    lines = list(_lines(parsed))
    st.dataframe(lines, hide_index=True, height="content", column_order=list(widths), column_config=columns)


def _lines(parsed: Preview) -> Iterator[dict[str, str]]:
    for record in parsed.records:
        if not isinstance(record, Record):
            rejected = {"Trace": f"line {record.line} is rejected", "Answer": visible(record.reason, 300)}
            yield {"Question": "", "Given": "", "Time": "", "Model": "", "Label": "", **rejected}
            continue
        trace = record.trace
        sources = count(len(trace.sources), "source") if trace.sources else "context" if trace.context else "none"
        yield {
            "Trace": visible(trace.id, 40),
            "Question": visible(trace.question, 200),
            "Answer": visible(trace.answer, 300),
            "Given": sources,
            "Time": stamp(trace.timestamp) if trace.timestamp else "undated",
            "Model": visible(trace.model, 40),
            "Label": ", ".join(label.verdict for label in record.labels),
        }


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    if size < 1000:
        return count(round(size), "byte")
    for unit in ("kB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{decimals(size, 1)} {unit}"
    return f"{decimals(size / 1000, 1)} GB"

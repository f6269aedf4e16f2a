"""The progress of an import, and what it did."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import streamlit as st

from calibrate.report.numbers import count, duration, listed
from calibrate.report.progress import line
from calibrate.report.sentences.traces.imports import ANSWER, left_purged, read_as, replaced, stated, unstated
from calibrate.report.sentences.traces.scores import taken
from calibrate.report.sentences.tuning.figures import capitalised
from calibrate.sanitize import cell
from pages.components.text import plain, visible
from pages.traces.import_job import FileState, ImportJob


@st.fragment(run_every=0.5)
def show_progress(job: ImportJob) -> None:
    """Progress, rate, time left and Stop; redraws the whole page once it is over."""
    if not job.running:
        st.rerun()
    with st.container(border=True):
        current = next((state for state in job.files if state.report.share < 1 and not state.problem), job.files[-1])
        st.text(visible(current.file.name, 120))
        st.progress(job.share, text=progress_text(job))
        st.button("Stop", icon=":material/stop:", on_click=job.stop, disabled=job.stopped)


def progress_text(job: ImportJob) -> str:
    """How far the import is. How many traces a file holds is told from the part of it that was read."""
    total = job.done / job.share if job.share > 0.02 else None
    if job.checked:
        return f"Checked {line(job.done, total, job.rate, 'line', estimated=True)}"
    return line(job.done, total, job.rate, "trace", estimated=True)


def show_report(job: ImportJob) -> None:
    with st.container(border=True):
        st.markdown(headline(job))
        for line in details(job):
            st.caption(line)
        for state in job.files:
            if state.problem:
                st.markdown(f":material/error: **{plain(state.file.name, 120)}** was not imported")
                st.text(state.problem)
        if len(job.files) > 1:
            st.dataframe([_row(state) for state in job.files], hide_index=True)
    if job.total("rejected"):
        _rejections(job)


def headline(job: ImportJob) -> str:
    imported, duplicates = job.total("imported"), job.total("duplicates")
    if job.stopped:
        return f"**Stopped.** {count(imported, 'trace')} imported before that; going on adds the rest."
    if imported:
        return f"**{count(imported, 'trace')} imported** in {duration(job.seconds)}."
    if duplicates:
        verb = "was" if duplicates == 1 else "were"
        return f"**Nothing new.** {count(duplicates, 'trace')} {verb} in the store already."
    return "**Nothing was imported.**"


def details(job: ImportJob) -> list[str]:
    lines = []
    if job.total("imported") and job.total("duplicates"):
        lines.append(f"{count(job.total('duplicates'), 'trace')} already in the store, left as it is.")
    if job.total("labels") or job.total("labels_left_out"):
        left_out = count(job.total("labels_left_out"))
        lines.append(f"{count(job.total('labels'), 'label')} kept, {left_out} left out.")
    for state in job.files:
        chosen = [stated(state.sample)] if state.sample else unstated(state.membership, ANSWER)
        lines += [f"{plain(capitalised(line), 400)}." for line in chosen]
    for state in job.files:
        lines += [f"Scores of {plain(taken(scores), 200)}." for scores in state.scores]
        lines += [
            f"Scores {plain(visible(name, 60), 80)} were not imported: {plain(why, 300)}."
            for name, why in state.refused.items()
        ]
    done = [state.done for state in job.files if state.done is not None and state.done.profile.n]
    lines += [f"{plain(capitalised(read_as(each)), 500)}." for each in done]
    if job.total("repaired"):
        lines.append(f"{count(job.total('repaired'), 'character')} that no database can hold became \ufffd.")
    if job.total("purged"):
        out = plain(capitalised(left_purged(job.total("purged"))))
        lines.append(f"{out}. Only the command line takes them in again.")
    redacted: Counter[str] = Counter()
    for state in job.files:
        redacted.update(state.report.redacted)
    if redacted:
        lines.append(f"{plain(capitalised(replaced(redacted)), 400)}.")
    fields = sorted({name for state in job.files for name in state.report.left_out})
    lines += [
        f":material/warning: {plain(state.file.name, 120)} is damaged and could not be read to its end: what stands "
        "before that is kept."
        for state in job.files
        if state.report.cut
    ]
    if fields:
        lines.append(f"Not kept: {plain(listed(fields, 8), 300)}.")
    return lines


def _row(state: FileState) -> dict[str, object]:
    report = state.report
    return {
        "File": visible(state.file.name, 120),
        "Imported": report.imported,
        "There already": report.duplicates,
        "Rejected": report.rejected,
        "Labels": report.labels,
        "Labels left out": report.labels_left_out,
    }


def _rejections(job: ImportJob) -> None:
    rows = [
        {"File": visible(state.file.name, 120), "Line": error.line, "Reason": visible(error.reason)}
        for state in job.files
        for error in state.report.errors
    ]
    table = pd.DataFrame(rows, columns=["File", "Line", "Reason"])
    total = job.total("rejected")
    first = f", the first {count(len(rows))} of them here" if len(rows) < total else ""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{count(total, 'line')} rejected**{first}")
        st.download_button(
            "Download",
            table.map(cell).to_csv(index=False),
            "rejected.csv",
            "text/csv",
            icon=":material/download:",
            type="tertiary",
        )
    shown = table if len(job.files) > 1 else table.drop(columns="File")
    st.dataframe(shown, hide_index=True, column_config={"Line": st.column_config.NumberColumn(width="small")})

"""Import traces: choose files, check what their columns are, take them in."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from calibrate.report.numbers import count
from calibrate.types import TraceFilter
from calibrate.workflow.sampling.usual import SIZE, draw_usual
from db import Store
from pages import shell
from pages.traces.import_form import choose_about_labels, choose_files, format_names, look
from pages.traces.import_job import ImportFile, ImportJob, Labels, running_of
from pages.traces.import_pulls import show_pulls
from pages.traces.import_readiness import show_readiness
from pages.traces.import_report import show_progress, show_report


def start(files: list[ImportFile], labels: Labels, strict: bool) -> None:
    """Start the import, one per person. The store takes no trace twice anyway."""
    if (job := newest()) is None or not job.running:
        st.session_state["import_job"] = ImportJob(shell.store(), files, labels=labels, strict=strict)


def newest() -> ImportJob | None:
    """This session's import, or one that goes on since its tab was closed."""
    job: ImportJob | None = st.session_state.get("import_job")
    if job is None and (job := running_of(shell.store(), shell.user())):
        st.session_state["import_job"] = job
    return job


def go_on(job: ImportJob) -> None:
    """Start a stopped import again with the same files."""
    if st.session_state.get("import_job") is job:
        st.session_state["import_job"] = job.go_on()


def again() -> None:
    for key in ("import_job", "import_spooled"):
        st.session_state.pop(key, None)
    st.session_state["import_round"] = st.session_state.get("import_round", 0) + 1


def form() -> None:
    files = choose_files()
    if not files:
        st.caption(
            "Your own records as JSON, CSV or Parquet, exports of tracing systems, chat logs, data sets; compressed "
            "too. What a file is, is recognised. A trace needs an answer. Importing a file twice adds nothing."
        )
        show_pulls(shell.store())
        return
    with st.popover("Options", icon=":material/tune:", type="tertiary"):
        format = st.selectbox("Format", list(format_names()), format_func=lambda name: format_names()[name])
        strict = st.toggle("All or nothing", help="Refuse a file in which any line cannot be taken.")
    ready, able, labels = look(files, format)
    wanted = choose_about_labels(files) if labels or len(files) > 10 else Labels()
    text = "Import" if len(files) == 1 else f"Import {count(len(files), 'file')}"
    arguments = (ready, wanted, strict)
    st.button(text, type="primary", icon=":material/upload:", disabled=not able, on_click=start, args=arguments)


def after(store: Store, job: ImportJob) -> None:
    """Where to go from here: on a store without a sample to the first label in one press."""
    first = shell.may_open("sample") and store.traces.count(TraceFilter(), limit=1) and not store.samples.list()
    with st.container(horizontal=True):
        if job.stopped:
            st.button("Go on", type="primary", icon=":material/play_arrow:", on_click=go_on, args=(job,))
        if first and not job.stopped and st.button("Label the first ones", type="primary", icon=":material/check_box:"):
            st.session_state["sample_at_hand"] = draw_usual(store, now=shell.now()).name
            st.switch_page(shell.page("label"))
        kind: Literal["secondary", "primary"] = "secondary" if first or job.stopped else "primary"
        if st.button("Draw a sample", type=kind, icon=":material/arrow_forward:", icon_position="right"):
            st.switch_page(shell.page("sample"))
        st.button("Import more", on_click=again)
    if first and not job.stopped:
        st.caption(f"Draws up to {count(SIZE)} of them for this week, each with a known chance, and opens the queue.")
    if store.traces.count(TraceFilter(), limit=1):
        show_readiness(store)


with shell.page_frame("Import", "Bring in the questions and answers your app has logged."):
    job = newest()
    if job is None:
        form()
    elif job.running:
        show_progress(job)
    else:
        show_report(job)
        after(shell.store(), job)

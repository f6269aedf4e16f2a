"""Which detectors can run on the traces that are in the store now, and on how many of them."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.report.sentences.detection import readiness as sentences
from calibrate.workflow.detection import readiness as step
from calibrate.workflow.detection.detect import scope_of
from calibrate.workflow.detection.readiness import Group, Readiness
from db import Store
from pages import shell
from pages.components.text import plain


@shell.cached_read("Looking which detectors can run …", entries=4)
def _look(store: Store) -> tuple[Readiness, ...]:
    return step.readiness(store, scope_of(everything=True))


def show_readiness(store: Store) -> None:
    """The detectors that are ready, then what the others wait for. The Detect page runs them."""
    rows = _look(store)
    ready = [row for row in rows if row.group == Group.READY]
    with st.container(border=True, key="import-readiness"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{count(len(ready), 'detector')} can run now**, of {count(len(rows))}", width="content")
            if shell.may_open("detect"):
                st.page_link(shell.page("detect"), label="Detect", icon=":material/play_circle:")
        lines = [{"Detector": row.detector.title, "Can score": sentences.can_score(row)} for row in ready]
        if lines:
            st.dataframe(lines, hide_index=True, height=min(36 + 35 * len(lines), 260))
        for name, waiting in step.by_field(rows).items():
            who = sentences.waiting_for(waiting)
            text = f"Your traces lack {sentences.lacking(name, waiting)} ({who}). {sentences.how_to_log(name)}"
            st.caption(plain(text, 600))
        for cause, waiting in step.by_cause(rows).items():
            st.caption(plain(f"Needs setup ({sentences.waiting_for(waiting)}): {sentences.setup(cause)}", 700))

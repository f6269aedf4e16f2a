"""The editor of a team file: its text, who saved which version, saving another, going back to the shipped one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.report.numbers import ago, stamp
from calibrate.workflow.detection import team_files as step
from db import Store
from pages import shell
from pages.components.text import label, plain

SHOWN = 5  # versions
HEIGHT = 340
REFUSED = "files_refused"  # {name: (text, why)}
_STYLE = "<style>[class*=st-key-edit-] textarea {font-family: monospace; font-size: .875rem; line-height: 1.5}</style>"
CHANGES = {
    "prompts/": "Scores are kept with the version they were made with. Another version asks about every trace again.",
    "templates/": "Scores are kept with the version they were made with. Another version asks about every trace again.",
    "refusals/": "Scores are kept with the lists they were made with. After a change every detector starts anew.",
    "prices.csv": "Prices change no score: they are for estimates, for the cost of a run and for its limit.",
}


def edit(store: Store, file: step.File, now: datetime) -> None:
    """The editor of one file."""
    # Another key with every saved version: the field then begins with the text that counts.
    key = f"file_{file.name}_{len(file.history)}_{file.version}"
    st.html(_STYLE)
    with st.container(gap="small", key=f"edit-{file.name.replace('/', '-').replace('.', '-')}"):
        st.markdown(f"**{plain(file.name)}** &ensp; :gray[version {file.version}, {plain(_who(file, now))}]")
        text, error = st.session_state.get(REFUSED, {}).get(file.name, (None, None))
        if error is not None and st.session_state.get(key) == text:
            shell.show_error(error)
        st.text_area(f"Text of {label(file.name)}", file.text, height=HEIGHT, key=key, label_visibility="collapsed")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button("Save", icon=":material/save:", key=f"{key}_save", on_click=_save, args=(store, file.name, key))
            st.button("Ours again", key=f"{key}_ours", disabled=file.ours, on_click=_reset, args=(store, file.name))
            st.caption(next(text for start, text in CHANGES.items() if file.name.startswith(start)), width="content")
        lines = list(_history(file, now))
        if lines:
            st.caption("  \n".join(lines))


def show_lists(store: Store, now: datetime) -> None:
    """Refusals and prices, which belong to no single detector."""
    with st.expander("Lists and prices", icon=":material/list_alt:"):
        name = st.selectbox("File", step.shared(), width=320, key="file_chosen")
        edit(store, step.get(store, name), now)


def _who(file: step.File, now: datetime) -> str:
    if file.ours:
        return "as it comes with Touchstone"
    return f"saved by {file.history[0].saved_by} {ago(file.history[0].saved_at, now)}"


def _history(file: step.File, now: datetime) -> Iterator[str]:
    for saved in file.history[:SHOWN]:
        version = "ours again" if saved.text is None else f"version {step.version_of(saved.text)}"
        why = f", because: {saved.reason}" if saved.reason else ""
        yield plain(f"{stamp(saved.saved_at)} UTC, {saved.saved_by}: {version}{why}", 400)
    if len(file.history) > SHOWN:
        yield f"and {len(file.history) - SHOWN} before"


def _save(store: Store, name: str, key: str) -> None:
    """Save the text. One that cannot be used stays in the field, with the error below until it is changed."""
    text = str(st.session_state[key] or "")
    refused: dict[str, tuple[str, TouchstoneError]] = st.session_state.setdefault(REFUSED, {})
    refused.pop(name, None)
    try:
        step.save(store, name, text, by=shell.user(), now=shell.now())
    except TouchstoneError as error:
        refused[name] = (text, error)


def _reset(store: Store, name: str) -> None:
    step.reset(store, name, by=shell.user(), now=shell.now())

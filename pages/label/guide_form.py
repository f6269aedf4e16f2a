"""The labelling guide as a labeller reads it, and as a calibrator changes it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from calibrate.types import Guide
from calibrate.workflow.labelling import guide_changes, guides
from calibrate.workflow.labelling.guide_file import LONGEST, LONGEST_TEXT, MOST_KINDS
from db import Store
from pages import shell
from pages.components.text import plain

HEIGHT = 260
COLUMNS = {
    "key": None,  # labels hold it: a kind that is renamed stays the same
    "name": st.column_config.TextColumn("Kind", max_chars=LONGEST["name"], width="medium"),
    "meaning": st.column_config.TextColumn("What it means", max_chars=LONGEST["meaning"], width="large"),
}


def read(guide: Guide) -> None:
    """The guide, to read."""
    with st.container(border=True):
        st.text(guide.text)
    for digit, kind in enumerate(guide.kinds, 1):
        st.markdown(f"**{digit} {plain(kind.name)}** {plain(kind.meaning)}")


def edit(store: Store, guide: Guide) -> None:
    """The guide, to change. What is typed is kept until somebody saves a version."""
    made_from = int(st.session_state.setdefault("guide_from", guide.version))
    text = st.text_area(
        "Guidelines", guide.text, height=HEIGHT, max_chars=LONGEST_TEXT, key=f"guide_text_{made_from}",
        help="Plain text: when an answer is clean, and when it is hallucinated.",
    )  # fmt: skip
    base = guides.get(store, made_from)
    rows = [{"key": kind.key, "name": kind.name, "meaning": kind.meaning} for kind in base.kinds]
    st.caption(f"Kinds of error, at most {MOST_KINDS}, in the order of their digits. Add one below; delete to retire.")
    edited = st.data_editor(
        pd.DataFrame(rows), column_config=COLUMNS, num_rows="dynamic", hide_index=True, key=f"guide_kinds_{made_from}"
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    why = left.text_input("Why (optional)", max_chars=500, key=f"guide_why_{made_from}", placeholder="What led to it")
    if right.button("Save as a new version", type="primary", width="stretch"):
        _save(store, made_from, text, edited, why)
    shell.show_kept_error("guide_problem")
    if guide.version != made_from:
        st.button("Look at the newest version, and drop what is typed here", on_click=_renew)


def _save(store: Store, made_from: int, text: str, edited: Any, why: str) -> None:
    with shell.errors_kept("guide_problem"):
        shell.require("calibrator")
        rows = [(_cell(row["key"]) or None, _cell(row["name"]), _cell(row["meaning"])) for _, row in edited.iterrows()]
        kinds = guide_changes.kinds_named(store, rows)
        guide, is_new = guides.save(
            store, text, kinds, by=shell.user(), now=shell.now(), why=why.strip() or None, after=made_from
        )
        if is_new:
            st.session_state["guide_saved"] = guide.version
        _renew()
        st.rerun()


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _renew() -> None:
    st.session_state.pop("guide_from", None)

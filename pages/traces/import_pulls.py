"""Pulls from other systems on the Import page: which there are, how their rows come in, and how to go on with one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.ingest.systems.base import PullRequest
from calibrate.report.sentences.traces import pulls as sentences
from calibrate.report.tables.pulls import COLUMNS, PREVIEW
from calibrate.workflow.pulling.own_table import open_own_table
from db import Store
from pages import shell
from pages.components.tables import config, frame
from pages.components.text import plain


def show_pulls(store: Store) -> None:
    """List the pulls, or say how one begins."""
    pulls = store.pulls.list()
    with st.expander("From another system", icon=":material/cloud_download:", expanded=bool(pulls)):
        if pulls:
            st.dataframe(frame(COLUMNS, pulls), column_config=config(COLUMNS), hide_index=True)
            st.caption(sentences.GO_ON)
            st.code("\n".join(sentences.command(pull.system, pull.name) for pull in pulls), language=None)
            _preview(store, [pull.name for pull in pulls if pull.system == "sql"])
        else:
            st.caption(sentences.BEGIN)
            st.code(sentences.FIRST, language=None)


def _preview(store: Store, names: Sequence[str]) -> None:
    """Show the first rows of a table of one's own as the traces that they become. Nothing is stored."""
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(sentences.PREVIEW, names, key="import_preview_of")
        wanted = st.button("Preview", icon=":material/visibility:")
    if wanted and (pull := store.pulls.get(name)) is not None:
        try:
            columns, rows = open_own_table(PullRequest(name=name, stored=pull.settings), store).preview()
        except TouchstoneError as error:
            shell.show_error(error)
            return
        st.caption(plain(f"{sentences.COLUMNS_ARE} {', '.join(columns)}"))
        st.dataframe(frame(PREVIEW, rows), column_config=config(PREVIEW), hide_index=True)

"""Who did what: the audit log, newest first."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.report.tables.audit import COLUMNS
from calibrate.report.tables.column import as_csv
from db import Store
from pages import shell
from pages.components import tables

MOST = 500  # rows on the page; the file has them all
ANYBODY, ANYTHING = "Anybody", "Anything"


def show(store: Store) -> None:
    st.caption("Single labels are not in this log: see Label → Disputes, or export the labels.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        person = st.selectbox("Who", [ANYBODY, *store.audit.people()], key="audit_who", width=260)
        verb = st.selectbox("Did what", [ANYTHING, *store.audit.verbs()], key="audit_verb", width=260)
        who, did = (None if person == ANYBODY else person), (None if verb == ANYTHING else verb)
        st.download_button(
            "Download CSV",
            lambda: as_csv(COLUMNS, store.audit.entries(who=who, verb=did)),
            file_name="audit.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            type="tertiary",
        )
    entries = store.audit.entries(who=who, verb=did, limit=MOST + 1)
    if not entries:
        st.caption("Nothing of the kind has been done in this store yet.")
        return
    st.dataframe(
        tables.frame(COLUMNS, entries[:MOST]), column_config=tables.config(COLUMNS), hide_index=True, height="content"
    )
    if len(entries) > MOST:
        st.caption(f"The newest {count(MOST)}. The CSV file has them all.")


with shell.page_frame(
    "Who did what", "Nobody can change or delete an entry; a purge takes out what one quotes from a purged trace."
) as store:
    show(store)

"""Traces: page through all there are, filter, read one with its scores and labels."""

from __future__ import annotations

import streamlit as st

from calibrate.types import TraceFilter
from pages import shell
from pages.traces import trace_detail, trace_filter, trace_table


def main() -> None:
    with shell.page_frame("Traces", "Everything that was imported, newest first."):
        store = shell.store()
        if not store.traces.count(TraceFilter(), limit=1):
            _empty()
            return
        where = trace_filter.draw(store)
        pages = trace_table.pages_seen(where)
        with st.spinner("Looking through the traces…", show_time=True):
            page = store.traces.page(where, limit=trace_table.ROWS, after=pages[-1])
            total = trace_table.count_traces(store, where)
        if not page.lines:
            st.info("No trace matches. Take a filter away, or press Clear.", icon=":material/filter_alt:")
        else:
            trace_table.show_pager(page, pages, total)
            trace_table.show_table(store, page, where, len(pages))
        if trace_id := st.query_params.get("trace"):
            trace_detail.show(store, trace_id)
        elif page.lines:
            st.caption("Tick a row to read the trace, its scores and its labels here.")


def _empty() -> None:
    with st.container(border=True):
        st.subheader("No traces yet", anchor=False)
        st.write(
            "Here you read what your application answered, with the sources it had, what the detectors say of it "
            "and how it was labelled. Bring in a file of logged questions and answers to begin."
        )
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))


main()

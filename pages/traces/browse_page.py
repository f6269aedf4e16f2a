"""Traces: the list on the left, the open trace on the right."""

from __future__ import annotations

import streamlit as st

from calibrate.report.names import title_of
from calibrate.types import TraceFilter
from db import Store
from pages import shell
from pages.traces import trace_detail, trace_filter
from pages.traces.trace_list import view as trace_list
from pages.traces.trace_list.rows import View

# One screen: the list and the trace scroll, the page does not. On a narrow screen one is above the other.
HEIGHT = "max(22rem, calc(100dvh - 14.5rem))"
STYLE = """<style>
.stMainBlockContainer h1 {font-size: 1.15rem; padding: 0}
.stMainBlockContainer {padding-bottom: 1rem}
.st-key-traces-filter [data-testid=stTextInput] {flex: 1 1 14rem}
.st-key-traces-split [data-testid=stVerticalBlock] {gap: .6rem}
@media (max-width: 900px) {
  .st-key-traces-split [data-testid=stHorizontalBlock]:has(> .stColumn .st-key-trace-head) {flex-direction: column}
  .st-key-traces-split [data-testid=stHorizontalBlock]:has(> .stColumn .st-key-trace-head) > .stColumn {
    width: 100%; flex: 1 1 auto;
  }
  .st-key-traces-split [data-testid=stHorizontalBlock]:has(.touchstone-labelling) > .stColumn:first-child,
  .stMainBlockContainer:has(.touchstone-labelling) .st-key-traces-filter {
    display: none;
  }
  .st-key-traces-split [data-testid=stHorizontalBlock]:has(.touchstone-labelling) > .stColumn {
    width: 100%; min-width: 100%;
  }
}
</style>"""


def main() -> None:
    st.html(STYLE)
    with shell.page_frame("Traces", "Everything that was imported, and what is known of each answer.") as store:
        if not store.traces.count(TraceFilter(), limit=1):
            _empty()
            return
        view, detector = trace_filter.draw(store)
        with st.container(key="traces-split"):
            _split(store, view, detector)


@st.fragment
def _split(store: Store, view: View, detector: str | None) -> None:
    """The list, and the trace that is open: opening another draws these two anew, and no filter."""
    with shell.guarded():
        left, right = st.columns([5, 8], gap="medium")
        with left:
            title = title_of(detector) if detector else None
            opened = st.query_params.get("trace")
            chosen = trace_list.show(store, view, opened=opened, score=title, height=HEIGHT)
            if chosen and chosen != opened:
                st.query_params["trace"] = opened = chosen
        with right:
            if opened:
                trace_detail.show(store, opened, detector)


def _empty() -> None:
    with st.container(border=True):
        st.header("No traces yet", anchor=False)
        st.write(
            "Here you read what your application answered, with the sources it had, what the detectors say of it "
            "and how it was labelled. Bring in a file of logged questions and answers to begin."
        )
        if st.button("Import traces", type="primary", icon=":material/upload:"):
            st.switch_page(shell.page("import"))


main()

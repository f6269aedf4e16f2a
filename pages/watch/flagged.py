"""Flagged traces to look at: the newest that nobody has labelled."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.numbers import listed, minute
from calibrate.types import TraceFilter
from db import Store
from db.decisions import StoredDecision
from pages import shell
from pages.components.text import middle, plain, visible

MOST = 5


@shell.cached_read(None, "traces", "labels", "decisions", "purges")
def newest(store: Store) -> list[tuple[str, datetime | None, StoredDecision]]:
    """The newest flagged traces without a label."""
    return store.decisions.flagged(TraceFilter(label="unlabelled"), limit=MOST)


def show(store: Store) -> None:
    """A line for each, with the way to label it; nothing where nothing is flagged."""
    rows = newest(store)
    if not rows:
        return
    st.markdown("**Flagged, and not labelled yet** :gray[:small[the newest; these labels are outside any sample]]")
    with st.container(key="flagged", gap=None):
        for trace_id, at, decision in rows:
            _line(trace_id, at, decision)


def _line(trace_id: str, at: datetime | None, decision: StoredDecision) -> None:
    when = minute(at) if at else "undated"
    by = listed([title_of(name) for name in decision.flags])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            shell.page("traces"),
            label="Label now",
            icon=":material/check_box:",
            query_params={"trace": trace_id},
            disabled=not shell.may_open("traces"),
        )
        shown = plain(middle(visible(trace_id, 200), 40))
        st.markdown(f"{shown} :gray[:small[{when} · flagged by {plain(by, 120)}, {decision.tier}]]", width="content")

"""The table of traces: its pages, the flags, and the row that is read below."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

import streamlit as st

from calibrate.report.numbers import count, stamp
from calibrate.report.sentences.purges import IN_PLACE
from calibrate.types import TraceFilter
from db import Store
from db.decisions import StoredDecision
from db.traces import Page
from pages import shell
from pages.components.text import visible

ROWS = 50
MOST_COUNTED = 10_000


def pages_seen(where: TraceFilter) -> list[tuple[datetime | None, int] | None]:
    """Where each page so far begins, the current one last; a new filter starts at the first."""
    key = _key(where, 0)
    if st.session_state.get("browse_filter") != key:
        if "browse_filter" in st.session_state:
            st.query_params.pop("trace", None)
        st.session_state["browse_filter"] = key
        st.session_state["browse_pages"] = [None]
    starts: list[tuple[datetime | None, int] | None] = st.session_state["browse_pages"]
    return starts


def show_pager(page: Page, pages: list[Any], total: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        first = (len(pages) - 1) * ROWS + 1
        many = f"{count(MOST_COUNTED)}+" if total > MOST_COUNTED else f"{count(total)}"
        st.markdown(f"**{count(first)} to {count(first + len(page.lines) - 1)}** of {many}", width="stretch")
        at_start = len(pages) == 1
        st.button("First", icon=":material/first_page:", type="tertiary", disabled=at_start, on_click=_first)
        st.button("Newer", icon=":material/chevron_left:", disabled=at_start, on_click=_newer)
        st.button(
            "Older", icon=":material/chevron_right:", disabled=not page.after, on_click=_older, args=(page.after,)
        )


def _first() -> None:
    st.session_state["browse_pages"] = [None]


def _newer() -> None:
    st.session_state["browse_pages"] = st.session_state["browse_pages"][:-1] or [None]


def _older(after: tuple[datetime | None, int]) -> None:
    pages = st.session_state["browse_pages"]
    if pages[-1] != after:
        st.session_state["browse_pages"] = [*pages, after]


def flags_of(store: Store, page: Page) -> dict[int, str]:
    """What the newest release flagged, by trace: "page: rouge_l (v3)"; "none (v3)"; "not scored (v3)"."""
    decisions = store.decisions.newest([line.pk for line in page.lines])
    return {pk: f"{_flags_text(decision)} (v{decision.version})" for pk, decision in decisions.items()}


def _flags_text(decision: StoredDecision) -> str:
    if decision.flags:
        return f"{decision.tier}: {', '.join(decision.flags)}"
    return "none" if any(value is not None for value in decision.scores.values()) else "not scored"


def show_table(store: Store, page: Page, where: TraceFilter, number: int) -> None:
    """The traces of page `number`; ticking a row puts it into the address."""
    flags, key = flags_of(store, page), _key(where, number)
    rows = [
        {
            "Time (UTC)": stamp(line.timestamp) if line.timestamp else "–",
            "Model": visible(line.model, 60) or "–",
            "Question": visible(line.question, 200).replace("\n", " "),
            "Answer": IN_PLACE if line.purged else visible(line.answer, 200).replace("\n", " "),
            "Gold": (line.gold or "").capitalize(),
            **({"Flags": visible(flags.get(line.pk), 200)} if flags else {}),
        }
        for line in page.lines
    ]
    chosen = st.query_params.get("trace")
    selected = next((place for place, line in enumerate(page.lines) if line.id == chosen), None)
    st.dataframe(
        rows,
        key=key,
        height=min(36 + 35 * len(rows), 286),
        hide_index=True,
        on_select=lambda: _select(key, [line.id for line in page.lines]),
        selection_mode="single-row",
        selection_default={"selection": {"rows": [selected]}} if selected is not None else None,
        column_config={
            "Time (UTC)": st.column_config.TextColumn(width=125),
            "Model": st.column_config.TextColumn(width=140),
            "Question": st.column_config.TextColumn(width=250 if flags else 310),
            "Answer": st.column_config.TextColumn(width=245 if flags else 385),
            "Gold": st.column_config.TextColumn(width=105),
            "Flags": st.column_config.TextColumn(width=200, help="Of the newest release that looked at the trace"),
        },
    )


def _select(key: str, ids: list[str]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        st.query_params["trace"] = ids[rows[0]]
    else:
        st.query_params.pop("trace", None)


def _key(where: TraceFilter, page: int) -> str:
    text = json.dumps([where.to_json(), page], sort_keys=True)
    return "traces-" + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@shell.cached_read(None, "traces", "labels")
def count_traces(store: Store, where: TraceFilter) -> int:
    return store.traces.count(where, limit=MOST_COUNTED + 1)

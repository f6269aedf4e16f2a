"""The list on a page: it draws and fetches its rows itself, and tells which trace to open."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from db import Store
from pages import shell
from pages.shell import requests
from pages.traces.trace_list.routes import PATH
from pages.traces.trace_list.rows import View

_HERE = Path(__file__).parent


def _script() -> str:
    """The two modules as one: a component takes a single one."""
    logic = (_HERE / "places.mjs").read_text(encoding="utf-8").replace("export function", "function")
    drawing = (_HERE / "list.mjs").read_text(encoding="utf-8")
    return logic + "".join(line for line in drawing.splitlines(keepends=True) if not line.startswith("import "))


_list = st.components.v2.component(
    "touchstone_trace_list",
    html='<div class="traces"></div>',
    css=(_HERE / "list.css").read_text(encoding="utf-8"),
    js=_script(),
)


def show(store: Store, view: View, *, opened: str | None, score: str | None, height: str) -> str | None:
    """Show the list; gives the id of a trace that somebody opened in it just now. `score`: whose scores it shows."""
    result = _list(
        key="trace-list",
        data={
            "address": requests.address(PATH),
            "typed": str(st.session_state.get("user") or "") if shell.may_type_a_name() else "",
            "view": view.to_json(),
            "revision": str(store.revision("traces", "labels", "scores")),
            "opened": opened,
            "score": score,
            "height": height,
        },
        on_opened_change=lambda: None,
    )
    chosen = result.opened
    return chosen if isinstance(chosen, str) else None

"""The filter of the Traces page. It is kept in the address, so that it can be shared."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, get_args

import streamlit as st

from calibrate.types import LabelState, TraceFilter
from db import Store
from pages import shell
from pages.components.text import plain

LABEL_STATES: tuple[LabelState, ...] = get_args(LabelState)
KEYS = ("text", "model", "operation", "attribute", "label", "since", "until")


def draw(store: Store) -> TraceFilter:
    """Draw the widgets, which read and write the address; returns the filter."""
    models, operations = _models_and_operations(store)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", wrap=False)
    text = row.text_input(
        "Text in question or answer", key="text", bind="query-params", icon=":material/search:", max_chars=200
    )
    chosen_models = row.multiselect(
        "Model", _with("model", models), key="model", bind="query-params", accept_new_options=True, placeholder="Any"
    )
    label = row.selectbox("Label", LABEL_STATES, key="label", bind="query-params", width=170)
    hidden = _count_set("operation", "attribute", "since", "until")
    with row.popover(f"More filters{f' ({hidden})' if hidden else ''}", icon=":material/tune:"):
        chosen_operations = st.multiselect(
            "Operation",
            _with("operation", operations),
            key="operation",
            bind="query-params",
            accept_new_options=True,
            placeholder="Any",
        )
        attribute = st.text_input(
            "Attribute", key="attribute", bind="query-params", placeholder="name=value", max_chars=300
        )
        st.caption(_attribute_help(store))
        since = st.date_input("From", value=None, key="since", bind="query-params", format="YYYY-MM-DD")
        until = st.date_input("To, inclusive", value=None, key="until", bind="query-params", format="YYYY-MM-DD")
        st.caption("Days are UTC. Undated traces are outside every window.")
    row.button("Clear", type="tertiary", on_click=clear, disabled=_count_set(*KEYS) == 0)
    return read(
        {
            "text": text,
            "models": chosen_models,
            "operations": chosen_operations,
            "label": label,
            "attribute": attribute,
            "since": since,
            "until": until,
        }
    )


def read(values: Mapping[str, Any]) -> TraceFilter:
    """The filter that the widgets' values mean. A time window leaves undated traces out."""
    since, until = _midnight(values["since"]), _midnight(values["until"])
    name, equals, value = (values["attribute"] or "").partition("=")
    return TraceFilter(
        since=since,
        until=until + timedelta(days=1) if until else None,
        undated=since is None and until is None,
        models=tuple(values["models"]),
        operations=tuple(values["operations"]),
        attributes={name.strip(): value.strip()} if equals and name.strip() else {},
        label=values["label"] or "any",
        text=(values["text"] or "").strip() or None,
    )


def clear() -> None:
    """Empties every widget of the filter."""
    empty: dict[str, Any] = {"text": "", "attribute": "", "model": [], "operation": [], "label": "any"}
    for key in KEYS:
        st.session_state[key] = empty.get(key)


def _count_set(*keys: str) -> int:
    return sum(key in st.query_params for key in keys)


def _midnight(day: date | None) -> datetime | None:
    return datetime.combine(day, time(), UTC) if day else None


@shell.cached_read(None, "traces", entries=8)
def _models_and_operations(store: Store) -> tuple[list[str], list[str]]:
    """Those of the newest thousand traces: enough to choose from without a scan of a million."""
    lines = store.traces.page(TraceFilter(), limit=1000).lines
    models = sorted({line.model for line in lines if line.model})
    return models, sorted({line.operation for line in lines if line.operation})


def _with(key: str, options: list[str]) -> list[str]:
    """The options, and what the address names beside them."""
    return sorted({*options, *st.query_params.get_all(key), *(st.session_state.get(key) or [])})


@shell.cached_read(None, "traces", entries=8)
def _attributes(store: Store) -> list[str]:
    return store.traces.attribute_names()


def _attribute_help(store: Store) -> str:
    names = _attributes(store)
    if not names:
        return "The newest traces carry no attributes."
    return "The newest traces carry " + ", ".join(plain(n, 60) for n in names[:12])

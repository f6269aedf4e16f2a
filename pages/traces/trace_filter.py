"""What the list of traces shows. It is kept in the address: a view that is worth keeping is a bookmark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from calibrate import registry
from calibrate.report.names import title_of
from calibrate.types import LabelState, TraceFilter
from calibrate.workflow.detection.configurations import configs_by_detector
from calibrate.workflow.releasing.history import live_release
from db import Store
from db.listing.lines import Order, ScoreBand
from pages import shell
from pages.components.text import plain
from pages.traces.trace_list.rows import View

LABEL_STATES: tuple[LabelState, ...] = get_args(LabelState)
NEWEST, SUSPICIOUS, TRUSTED = SORTS = ("newest", "suspicious", "trusted")
SORT_NAMES = {NEWEST: "Newest first", SUSPICIOUS: "Most suspicious first", TRUSTED: "Least suspicious first"}
TIMES = ("since", "until")
HIDDEN = ("label", "model", "operation", "attribute", *TIMES, "low", "high")
KEYS = ("text", "sort", *HIDDEN)
# What the widgets of _by_facts say where none is drawn.
NOTHING: Mapping[str, Any] = {
    "label": None, "low": None, "high": None, "models": (), "operations": (), "attribute": None,
}  # fmt: skip
# Views that people come back to: each sets these, and clears the rest.
USUAL: Mapping[str, Mapping[str, str]] = {
    "Unlabelled, most suspicious first": {"label": "unlabelled", "sort": SUSPICIOUS},
    "Labelled clean, most suspicious first": {"label": "clean", "sort": SUSPICIOUS},
    "Disputed": {"label": "disputed"},
}


def draw(store: Store) -> tuple[View, str | None]:
    """Draw the widgets, which read and write the address; returns the view, and the detector whose scores it shows.
    Whoever only labels searches texts and times."""
    blind = shell.person().is_blind
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="traces-filter")
    text = row.text_input(
        "Search", key="text", bind="query-params", icon=":material/search:", max_chars=200,
        placeholder="Text in question or answer", label_visibility="collapsed",
    )  # fmt: skip
    scored = {} if blind else _scored(store)
    detector = None
    sort = NEWEST
    if scored:
        titles = {name: title_of(name) for name in scored}
        detector = _choice(row, "Scores of", "detector", titles, width=200)
        sort = _choice(row, "Order", "sort", SORT_NAMES, width=210)
    hidden = sum(key in st.query_params for key in (TIMES if blind else HIDDEN))
    with row.popover(f"Filters ({hidden})" if hidden else "Filters", icon=":material/tune:"):
        values = NOTHING if blind else _by_facts(store, detector)
        values = {**values, **_by_time()}
        st.button("Clear", on_click=show_view, args=({},), icon=":material/filter_alt_off:")
        st.caption("The address holds this view: bookmark it to keep it, or send it.")
        if not blind:
            _usual(scored=detector is not None)
    where = read({"text": text, **values})
    return _view(where, scored.get(detector or ""), detector, sort, values), detector


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


def show_view(values: Mapping[str, str]) -> None:
    """Set these widgets of the filter and empty all others."""
    empty: dict[str, Any] = {"text": "", "attribute": "", "model": [], "operation": [], "label": "any", "sort": NEWEST}
    for key in KEYS:
        st.session_state[key] = values.get(key, empty.get(key))


def _choice(row: DeltaGenerator, label: str, key: str, names: Mapping[str, str], *, width: int) -> str:
    """A choice that is in the address by its key, not by its name; the first one is not. An address that somebody
    follows counts more than what was chosen before."""
    options, wanted = list(names), st.query_params.get(key)
    if key not in st.session_state or wanted != st.session_state.get(f"{key}_address"):
        st.session_state[key] = wanted if wanted in options else options[0]
    chosen: str = row.selectbox(
        label, options, key=key, width=width, format_func=names.__getitem__, label_visibility="collapsed"
    )
    if chosen == options[0]:
        st.query_params.pop(key, None)
    else:
        st.query_params[key] = chosen
    st.session_state[f"{key}_address"] = st.query_params.get(key)
    return chosen


def _by_facts(store: Store, detector: str | None) -> dict[str, Any]:
    """The filters by what is known of a trace."""
    label = st.selectbox("Label", LABEL_STATES, key="label", bind="query-params")
    low = high = None
    if detector:
        title = title_of(detector)
        left, right = st.columns(2)
        low = left.number_input(f"{title} from", value=None, key="low", bind="query-params", format="%g", step=0.05)
        high = right.number_input("to", value=None, key="high", bind="query-params", format="%g", step=0.05)
    models, operations = _models_and_operations(store)
    chosen_models = st.multiselect(
        "Model", _with("model", models), key="model", bind="query-params", accept_new_options=True, placeholder="Any"
    )
    chosen_operations = st.multiselect(
        "Operation",
        _with("operation", operations),
        key="operation",
        bind="query-params",
        accept_new_options=True,
        placeholder="Any",
    )
    attribute = st.text_input(
        "Attribute", key="attribute", bind="query-params", placeholder="name=value", max_chars=300,
        help=_attribute_help(store),
    )  # fmt: skip
    return {
        "label": label,
        "low": low,
        "high": high,
        "models": chosen_models,
        "operations": chosen_operations,
        "attribute": attribute,
    }


def _by_time() -> dict[str, Any]:
    left, right = st.columns(2)
    since = left.date_input(
        "From", value=None, key="since", bind="query-params", format="YYYY-MM-DD",
        help="Days are UTC. Undated traces are outside every window.",
    )  # fmt: skip
    until = right.date_input("To, inclusive", value=None, key="until", bind="query-params", format="YYYY-MM-DD")
    return {"since": since, "until": until}


def _usual(*, scored: bool) -> None:
    """Views that people come back to, as buttons; those by score where there are scores."""
    st.caption("Usual views:")
    for name, view in USUAL.items():
        if scored or "sort" not in view:
            st.button(name, type="tertiary", on_click=show_view, args=(view,))


def _view(where: TraceFilter, config: int | None, detector: str | None, sort: str, values: Mapping[str, Any]) -> View:
    if config is None or detector is None:
        return View(where)
    above = registry.get(detector).flag_when == "above"
    by_score: dict[str, Order] = {
        SUSPICIOUS: "highest" if above else "lowest",
        TRUSTED: "lowest" if above else "highest",
    }
    return View(where, ScoreBand(config, values["low"], values["high"]), by_score.get(sort, "newest"))


@shell.cached_read(None, "scores", "releases", entries=8)
def _scored(store: Store) -> dict[str, int]:
    """The configuration to show by detector, of those that have scores; those of the live release first."""
    live = live_release(store)
    released = set(live.detectors) if live else set()
    configs = {name: scored[-1].id for name, scored in configs_by_detector(store).items()}
    return dict(sorted(configs.items(), key=lambda each: (each[0] not in released, title_of(each[0]))))


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

"""The pool a sample is drawn from: its window, its filters, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

import streamlit as st

from calibrate.report.numbers import count, day
from calibrate.types import TraceFilter
from calibrate.workflow.sampling.sample import look
from calibrate.workflow.week.week import WINDOW
from db import Store
from db.tables.filters import NONE
from pages import shell
from pages.components import bars
from pages.components.text import visible

LAST, UP_TO_NEWEST, ALL, CUSTOM = "Last 14 days", "14 days up to the newest", "All", "Custom"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PoolView:
    """What the page shows of a pool: counts by facet, by label state and by day."""

    size: int
    undated: int
    facets: Mapping[str, Mapping[str, int]]
    labels: Mapping[str, int]
    days: Mapping[str, int]


def choose_pool(store: Store, newest: datetime | None) -> TraceFilter:
    """The window, undated traces and filters."""
    where = _window(newest)
    undated = store.traces.undated(TraceFilter())
    if undated and where.since is not None:
        include = st.checkbox(f"Include undated traces ({count(undated)})", key="draw_undated", value=newest is None)
        where = replace(where, undated=include)
    with st.expander("Filters", expanded=bool(st.query_params.get("model")), icon=":material/filter_list:"):
        return _filters(store, where)


@shell.cached_read("Counting the pool …", "traces", "labels", entries=64)
def view_of(store: Store, where: TraceFilter, by: str | None) -> PoolView:
    """The counts of a pool, also by the attribute `by`."""
    names = ("model", "operation", *([by] if by and by not in ("model", "operation") else []))
    pool = look(store, where, by=names)
    labelled = {
        state: store.traces.count(replace(where, label=state))
        for state in ("clean", "hallucinated", "unsure", "disputed")
    }
    rest = pool.size - sum(labelled.values())
    labels = {state: n for state, n in {**labelled, "unlabelled": rest}.items() if n}
    return PoolView(pool.size, pool.undated, pool.facets, labels, store.traces.per_day(where))


def show_pool(pool: PoolView, where: TraceFilter) -> None:
    dated = f"{count(pool.undated, 'undated trace')} {'in' if where.undated else 'left out'}" if pool.undated else ""
    st.markdown(f"**The pool: {count(pool.size, 'trace')}**" + (f" &ensp; :gray[{dated}]" if dated else ""))
    if pool.days:
        bars.days({"traces": pool.days}, height=120, key="pool_days")
    for title, counts in shares_of(pool).items():
        bars.shares(title, counts)


def shares_of(pool: PoolView) -> dict[str, Mapping[str, int]]:
    """The bars to draw, by title; a facet that no trace has is left out."""
    facets = {f"By {name}": counts for name, counts in pool.facets.items() if set(counts) != {NONE}}
    return {"By label": pool.labels, **facets}


def _window(newest: datetime | None) -> TraceFilter:
    now = shell.now()
    stale = newest is not None and newest < now - WINDOW
    options = [UP_TO_NEWEST if stale else LAST, ALL, CUSTOM]
    default = ALL if newest is None else options[0]
    if stale and newest:
        st.caption(f"The newest trace is from {day(newest)}; the last 14 days hold none.")
    window = st.segmented_control("Window", options, default=default, required=True, key=f"draw_window_{default}")
    if window == LAST:
        return last_days(now.date())
    if window == UP_TO_NEWEST and newest:
        return replace(last_days(newest.date()), until=_midnight(newest.date()) + DAY)
    if window == CUSTOM:
        last = (newest or now).date()
        chosen = st.date_input("From and to (UTC, both included)", (last - WINDOW + DAY, last), key="draw_dates")
        return between(chosen)
    return TraceFilter()


def last_days(last: date) -> TraceFilter:
    """The 14 days of which `last` is the last."""
    return TraceFilter(since=_midnight(last) - WINDOW + DAY, undated=False)


def between(chosen: tuple[date, ...] | date | None) -> TraceFilter:
    """The window of the chosen days, both included; open to the right while only the first is picked."""
    dates = chosen if isinstance(chosen, tuple) else (chosen,)
    since = _midnight(dates[0]) if dates and dates[0] else None
    until = _midnight(dates[1]) + DAY if len(dates) > 1 and dates[1] else None
    return TraceFilter(since=since, until=until, undated=False)


@shell.cached_read(None, "traces", "labels")
def _facet(store: Store, where: TraceFilter, name: str) -> dict[str, int]:
    return store.traces.facet(where, name)


def _filters(store: Store, where: TraceFilter) -> TraceFilter:
    models = list(_facet(store, where, "model"))
    operations = list(_facet(store, where, "operation"))
    requested = [name for name in [st.query_params.get("model")] if name in models]
    left, right = st.columns(2)
    with left:
        model = st.multiselect(
            "Model", models, default=requested, format_func=_named, placeholder="Any", key="draw_models"
        )
    with right:
        operation = st.multiselect(
            "Operation", operations, format_func=_named, placeholder="Any", key="draw_operations"
        )
    where = replace(where, models=tuple(model), operations=tuple(operation))
    names = store.traces.attribute_names()
    if not names:
        return where
    with left:
        attribute = st.selectbox(
            "Attribute", names, index=None, placeholder="Any", format_func=_named, key="draw_attribute"
        )
    if attribute is None:
        return where
    with right:
        values = list(_facet(store, where, attribute))
        value = st.selectbox("is", values, index=None, format_func=_named, key=f"draw_value_{attribute}")
    return replace(where, attributes={attribute: value}) if value is not None else where


def _named(name: str) -> str:
    return "not given" if name == NONE else visible(name, 80)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)

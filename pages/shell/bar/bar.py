"""Draws the bar, and goes where it is told to: a click changes the page within the session."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate import registry, settings
from calibrate.errors import TouchstoneError
from calibrate.report.names import title_of
from calibrate.report.numbers import count
from calibrate.report.sentences.labelling import labels as sentences
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection import configurations
from db import Store
from pages.shell import frame, navigation
from pages.shell.bar import at_hand, words
from pages.shell.cache import cached_read
from pages.shell.identity import Person, may_open, may_type_a_name, person, signs_in

log = logging.getLogger("touchstone")

_KEY = "touchstone-bar"
NAME = 100  # characters of a name that somebody types
TRACES = 200  # whose ids the palette offers; of any other the whole id is typed
_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "touchstone_bar",
    css=(_HERE / "bar.css").read_text(encoding="utf-8"),
    js=(_HERE / "bar.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)

Facts = dict[str, Any]


def show(key: str | None, person: Person) -> Facts | None:
    """Draw the bar of the page with this key. Returns what it says of the labels at hand, for `follow`."""
    store = _opened()
    labels = _labels(store, key)
    state = _component(
        key=_KEY,
        data={
            "bar": _pages(key),
            "labels": labels,
            "person": {"name": person.name, "shown": person.shown, "out": signs_in(), "typed": may_type_a_name()},
            "palette": _palette(store),
            "help": {"keys": words.KEYS, "words": words.WORDS, "documentation": words.DOCUMENTATION},
        },
        on_go_change=lambda: None,
        on_sample_change=_take_sample,
        on_name_change=_take_name,
    )
    _go(state.get("go"))
    return labels


def follow(key: str | None, labels: Facts | None) -> None:
    """After the page: say in the bar if other labels are at hand now than those it was drawn with."""
    now = _labels(_opened(), key)
    if now != labels:
        _component(key="touchstone-bar-labels", data={"labels": now})


def _opened() -> Store | None:
    """The open store; None where it cannot be opened, which the page says."""
    try:
        return frame.opened()
    except TouchstoneError:
        return None


def _take_sample() -> None:
    """Take the sample that somebody chose in the bar into the hand. What comes from a browser may be anything."""
    if isinstance(name := st.session_state[_KEY].get("sample"), str):
        at_hand.choose(name[:500])


def _take_name() -> None:
    """Go by the name that somebody typed in the bar, where nothing else says who they are."""
    typed = st.session_state[_KEY].get("name")
    if isinstance(typed, str) and (name := " ".join(typed.split())[:NAME]) and may_type_a_name():
        st.session_state["user"] = st.query_params["user"] = name


def _go(chosen: object) -> None:
    """Go to a page that somebody chose in the bar. What comes from a browser may be anything."""
    if not isinstance(chosen, Mapping) or not navigation.is_page(key := chosen.get("page")):
        return
    query = chosen.get("query")
    where = {str(name): str(value)[:500] for name, value in query.items()} if isinstance(query, Mapping) else None
    st.switch_page(navigation.page(str(key)), query_params=where)


def _pages(key: str | None) -> Facts:
    opened = navigation.opened()
    here = navigation.section_of(key)
    return {
        "sections": [
            {"name": section, **_link(navigation.entry(section, tabs)), "current": section == here}
            for section, tabs in opened.items()
        ],
        "here": here,
        "tabs": [
            {"name": name, **_link(tab), "current": tab == key}
            for tab, name in opened.get(here, {}).items()
            if not navigation.is_reached_by_link(tab) or tab == key
        ],
        "all": [
            {"name": name if len(tabs) == 1 else f"{section}: {name}", **_link(tab)}
            for section, tabs in opened.items()
            for tab, name in tabs.items()
        ],
    }  # fmt: skip


def _link(key: str) -> Facts:
    return {"page": key, "href": navigation.address(key)}


def _own(store: Store, sample: Sample | None) -> list[str]:
    """How far somebody is who may not know what others say: a count of all labels would tell after each of theirs."""
    return [f"{count(store.labels.place(sample.id, person().name).labelled)} by you"] if sample else []


def _labels(store: Store | None, key: str | None) -> Facts | None:
    """The sample at hand and how far its labels are; None where that cannot be read: the page says why."""
    if store is None:
        return None
    try:
        chosen = at_hand.choice_on(store, key)
        names = chosen.sample.names if chosen.sample else ()
        counts = at_hand.labels_of(store, names).counts
        brief = _own(store, chosen.sample) if person().is_blind else sentences.brief(counts)
    except TouchstoneError:
        return None
    except Exception:
        log.error("the bar could not count labels\n%s", settings.hide_secrets(traceback.format_exc()))
        return None
    leads_to = {**_link("agreement"), "query": {"view": "disputed", "sample": chosen.name}}
    return {
        "sample": chosen.name,
        "samples": [
            {"name": name, "about": _about(chosen.samples.get(name), drawn=may_open("sample"))} for name in chosen.names
        ],
        "counts": brief,
        "disputed": counts.disputed > 0 and not person().is_blind,
        "link": leads_to if counts.labelled and may_open("agreement") else None,
    }


def _about(sample: Sample | None, *, drawn: bool) -> str:
    """Its size, and for those who draw how it was `drawn`: to others that would say what to expect of its traces."""
    if sample is None:
        return ""
    return count(sample.size, "trace") + (f", {sample.design.replace('-', ' ')}" if drawn else "")


def _palette(store: Store | None) -> Facts:
    """What the command palette offers beside pages."""
    if store is None:
        return {"detectors": [], "traces": [], "trace": None}
    try:
        scored, newest = _with_scores(store), _newest(store)
    except TouchstoneError:
        scored, newest = [], []
    return {
        "detectors": [
            {"name": title, "id": name, **_link(page), "where": navigation.name(page)}
            for name, title in _titles().items()
            for page in (["tune"] if name in scored else []) + ["detectors"]
            if may_open(page)
        ],
        "traces": newest if may_open("traces") else [],
        "trace": _link("traces") if may_open("traces") else None,
    }


@cached_read(None, "scores")
def _with_scores(store: Store) -> list[str]:
    return list(configurations.configs_by_detector(store))


@cached_read(None, "traces")
def _newest(store: Store) -> list[str]:
    """The ids of the newest traces."""
    return [line.id for line in store.traces.page(TraceFilter(), limit=TRACES).lines]


def _titles() -> dict[str, str]:
    """The detectors by the name that people know them by."""
    titles = {name: title_of(name) for name in registry.names()}
    return dict(sorted(titles.items(), key=lambda item: item[1].lower()))

"""Choosing detectors and their parameters. The form of a detector comes from its own fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.detectors.base import Detector
from pages.parts.text import plain, visible

STATE = "detect_chosen"  # {detector: its parameters}; an ordinary key, so that it outlives a page switch


def choose_detectors() -> list[Detector]:
    """The ticked detectors with the parameters of the form."""
    found = [registry.make(name) for name in registry.names()]
    able = [detector for detector in found if detector.unavailable() is None]
    chosen: dict[str, bool] = st.session_state.setdefault(STATE, {detector.name: True for detector in able})
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("**Detectors**", width="content")
        with st.container(horizontal=True, width="content"):
            st.button("All", type="tertiary", on_click=_tick, args=([detector.name for detector in able], True))
            st.button("None", type="tertiary", on_click=_tick, args=([detector.name for detector in found], False))
    with st.container(border=True, gap="medium"):
        return [made for detector in found if (made := _row(detector, chosen)) is not None]


def _tick(names: list[str], on: bool) -> None:
    st.session_state.setdefault(STATE, {}).update(dict.fromkeys(names, on))
    for name in names:
        st.session_state[f"detect_on_{name}"] = on


def _row(detector: Detector, chosen: dict[str, bool]) -> Detector | None:
    """One line: the tick, what it measures, what it needs, its parameters."""
    why = detector.unavailable()
    tick, about, settings = st.columns([3, 7, 2], vertical_alignment="center", gap="small")
    with tick:
        key = f"detect_on_{detector.name}"
        st.session_state.setdefault(key, chosen.get(detector.name, False) and why is None)
        on = st.checkbox(f"**{plain(detector.title)}**", disabled=why is not None, key=key)
    chosen[detector.name] = on
    with about, st.container(gap=None):
        needs = ", ".join(sorted(detector.needs - {"answer"})) or "the answer alone"
        st.markdown(plain(measures(detector), 200))
        st.caption(f"{plain(detector.name)} · needs {plain(needs)} · flags {detector.flag_when} a threshold")
        if why is not None:
            st.caption(f":material/warning: {plain(why)}")
    with settings, st.container(horizontal_alignment="right"):
        params = _settings(detector)
    return registry.make(detector.name, params) if on and why is None else None


def measures(detector: Detector) -> str:
    """The first sentence of the detector's own words."""
    text = " ".join((inspect.getdoc(type(detector)) or detector.unit).split())
    return text.partition(". ")[0].rstrip(".") + "."


def _settings(detector: Detector) -> Mapping[str, Any]:
    parameters = registry.parameters(type(detector))
    if not parameters:
        return {}
    kept: dict[str, Any] = st.session_state.setdefault(f"detect_params_{detector.name}", {})
    changed = any(kept.get(one.name, one.default) != one.default for one in parameters)
    label = "Settings ·" if changed else "Settings"
    with st.popover(label, type="tertiary", icon=":material/tune:", key=f"detect_settings_{detector.name}"):
        st.markdown(f"**{plain(detector.title)}**")
        st.caption(f"Value: {plain(detector.unit)}. The common recipe's threshold is {detector.usual_threshold:g}.")
        for one in parameters:
            kept[one.name] = _field(detector.name, one, kept.get(one.name, one.default))
    return kept


def _field(name: str, one: registry.Parameter, value: Any) -> Any:
    label, key, about = one.name.replace("_", " ").capitalize(), f"detect_{name}_{one.name}", visible(one.help) or None
    if one.choices:
        index = one.choices.index(value)
        return st.selectbox(label, one.choices, index=index, key=key, help=about, format_func=str)
    if one.type is bool:
        return st.toggle(label, value=value, key=key, help=about)
    if one.type is int:
        return int(st.number_input(label, value=int(value), step=1, key=key, help=about))
    if one.type is float:
        return float(st.number_input(label, value=float(value), key=key, help=about, format="%.3g"))
    return st.text_input(label, value=str(value), key=key, help=about)

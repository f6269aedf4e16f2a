"""Choosing detectors and their parameters. A detector's form comes from its own fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.workflow.detection.detectors import asks_chat
from pages.components.text import label, plain, visible

STATE = "detect_chosen"  # {detector: its parameters}; an ordinary key, so that it outlives a page switch
_STYLE = "<style>[class*=st-key-detect_on_] label p {font-weight: 600}</style>"


def choose_detectors() -> list[Detector]:
    """The ticked detectors, with the parameters of their forms."""
    detectors = [registry.make(name) for name in registry.names()]
    able = [detector for detector in detectors if detector.unavailable() is None]
    # What is asked of a chat endpoint costs money: that is for somebody to tick.
    usual = {detector.name: not asks_chat(detector) for detector in able}
    chosen: dict[str, bool] = st.session_state.setdefault(STATE, usual)
    st.html(_STYLE)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("**Detectors**", width="content")
        with st.container(horizontal=True, width="content"):
            st.button("All", type="tertiary", on_click=_tick, args=([detector.name for detector in able], True))
            st.button("None", type="tertiary", on_click=_tick, args=([detector.name for detector in detectors], False))
    with st.container(border=True, gap="medium"):
        return [configured for detector in detectors if (configured := _row(detector, chosen)) is not None]


def choose_budget(detectors: Sequence[Detector]) -> float | None:
    """US dollars at which the run stops asking a chat endpoint; None for no limit, or if none is asked."""
    if not any(asks_chat(detector) for detector in detectors):
        return None
    st.session_state["detect_budget_field"] = st.session_state.get("detect_budget")
    limit = st.number_input(
        "Stop at $",
        min_value=0.0,
        step=1.0,
        format="%.2f",
        key="detect_budget_field",
        on_change=_keep_budget,
        placeholder="no limit",
        width=150,
        help="What the run's requests to the chat endpoint may cost, in US dollars. What is not asked then fails with "
        "that reason and is asked the next time. Needs a price: see “Lists and prices” on the Detectors page.",
    )
    return None if limit is None else float(limit)


def _keep_budget() -> None:
    st.session_state["detect_budget"] = st.session_state["detect_budget_field"]


def _tick(names: list[str], on: bool) -> None:
    st.session_state.setdefault(STATE, {}).update(dict.fromkeys(names, on))
    for name in names:
        st.session_state[f"detect_on_{name}"] = on


def _row(detector: Detector, chosen: dict[str, bool]) -> Detector | None:
    """One line per detector: the tick, what it measures, what it needs, its parameters."""
    why = detector.unavailable()
    tick, words, settings = st.columns([3, 7, 2], vertical_alignment="center", gap="small")
    with tick:
        key = f"detect_on_{detector.name}"
        st.session_state.setdefault(key, chosen.get(detector.name, False) and why is None)
        on = st.checkbox(label(detector.title), disabled=why is not None, key=key)
    chosen[detector.name] = on
    with words, st.container(gap=None):
        st.markdown(plain(measures(detector), 200))
        st.caption(f"{plain(detector.name)} · needs {plain(needs(detector))} · flags {detector.flag_when} a threshold")
        if why is not None:
            st.caption(f":material/warning: {plain(why)}")
    with settings, st.container(horizontal_alignment="right"):
        params = _settings(detector)
    return registry.make(detector.name, params) if on and why is None else None


def measures(detector: Detector) -> str:
    """The first sentence of the detector's own words."""
    return about(detector).partition(". ")[0].rstrip(".") + "."


def about(detector: Detector) -> str:
    """What it measures, in the detector's own words: the first paragraph of its docstring."""
    return " ".join((inspect.getdoc(type(detector)) or detector.unit).partition("\n\n")[0].split())


def needs(detector: Detector) -> str:
    return ", ".join(sorted(detector.needs - {"answer"})) or "the answer alone"


def _settings(detector: Detector) -> Mapping[str, Any]:
    parameters = registry.parameters(type(detector))
    if not parameters:
        return {}
    values = _stored_values(detector)
    changed = any(values.get(parameter.name, parameter.default) != parameter.default for parameter in parameters)
    text = "Settings ·" if changed else "Settings"
    with st.popover(text, type="tertiary", icon=":material/tune:", key=f"detect_settings_{detector.name}"):
        st.markdown(f"**{plain(detector.title)}**")
        st.caption(f"Value: {plain(detector.unit)}. The common recipe's threshold is {detector.usual_threshold:g}.")
        return fields(detector)


def fields(detector: Detector, *, columns: int = 1) -> Mapping[str, Any]:
    """A field for every parameter; returns what they hold. The session keeps them, the same on every page."""
    parameters, values = registry.parameters(type(detector)), _stored_values(detector)
    for start in range(0, len(parameters), columns):
        # A row at a time, so that fields of different heights stay in line.
        places = st.columns(columns, vertical_alignment="bottom") if columns > 1 else [st.container()]
        for place, parameter in zip(places, parameters[start : start + columns], strict=False):
            with place:
                values[parameter.name] = _field(detector.name, parameter, values.get(parameter.name, parameter.default))
    return values


def _stored_values(detector: Detector) -> dict[str, Any]:
    values: dict[str, Any] = st.session_state.setdefault(f"detect_params_{detector.name}", {})
    return values


def _field(name: str, parameter: registry.Parameter, value: Any) -> Any:
    text = parameter.name.replace("_", " ").capitalize().replace("Nli", "NLI")
    key, tip = f"detect_{name}_{parameter.name}", visible(parameter.help) or None
    if parameter.choices:
        index = parameter.choices.index(value)
        return st.selectbox(text, parameter.choices, index=index, key=key, help=tip, format_func=str)
    if parameter.type is bool:
        return st.toggle(text, value=value, key=key, help=tip)
    if parameter.type is int:
        low, high = (None if bound is None else int(bound) for bound in (parameter.low, parameter.high))
        return int(st.number_input(text, low, high, value=int(value), step=1, key=key, help=tip))
    if parameter.type is float:
        least, most = (None if bound is None else float(bound) for bound in (parameter.low, parameter.high))
        return float(st.number_input(text, least, most, value=float(value), key=key, help=tip, format="%.3g"))
    return st.text_input(text, value=str(value), key=key, help=tip)

"""The parameters of a detector: the form comes from its own fields. And what a run may cost."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.errors import BadInput
from calibrate.workflow.detection.detectors import asks_chat
from pages.components.text import visible


def configured(detector: Detector) -> Detector:
    """The detector with the parameters that this session gave it; with its own where those do not fit together."""
    try:
        return registry.make(detector.name, _stored_values(detector))
    except BadInput:  # the form says why
        return detector


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


def about(detector: Detector) -> str:
    """What it measures, in the detector's own words: the first paragraph of its docstring."""
    return " ".join((inspect.getdoc(type(detector)) or detector.unit).partition("\n\n")[0].split())


def needs(detector: Detector) -> str:
    return ", ".join(sorted(detector.needs - {"answer"})) or "the answer alone"


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

"""The two halves of the chart on a page: `show` draws it, `follow` is told where its handle rests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

_KEY, _TURN = "threshold_rest", "threshold_turn"
_HERE = Path(__file__).parent


def joined(*names: str) -> str:
    """Scripts as one module: a component takes a single one, and what they import of each other is in it."""
    lines = "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names).splitlines()
    own = [line for line in lines if not (line.startswith("import ") and '"./' in line)]
    return "\n".join(line.removeprefix("export ") if not _is_entry(line) else line for line in own)


def _is_entry(line: str) -> bool:
    return line.startswith("export default")


_chart = st.components.v2.component(
    "touchstone_threshold_chart",
    css=(_HERE / "chart.css").read_text(encoding="utf-8"),
    js=joined("geometry.mjs", "drawing.mjs", "files.mjs", "chart.mjs"),
)
_rest = st.components.v2.component("touchstone_threshold_rest", js=(_HERE / "rest.mjs").read_text(encoding="utf-8"))


def show(name: str, arrays: Mapping[str, Any], marks: Sequence[Mapping[str, Any]], here: Mapping[str, Any]) -> None:
    """Draw the chart of what `name` stands for (a detector on some labels). It stays while the threshold moves."""
    with st.container(key="threshold-chart"):
        _chart(key="threshold_chart", data={"name": name, "arrays": arrays, "marks": marks, "here": here})


def follow(
    name: str, here: Mapping[str, Any], on_rest: Callable[[float], None], *, key: str = "threshold_rest"
) -> None:
    """Tell the chart what holds at the threshold at hand; call `on_rest` with the threshold where its handle rests.

    It stands in the fragment that the threshold redraws: the chart itself is not sent again.
    """

    def rested() -> None:
        message = st.session_state[_KEY].get("moved")
        threshold = threshold_of(message, name)
        if threshold is not None:
            st.session_state[_TURN] = message["turn"]
            on_rest(threshold)

    turn = st.session_state.get(_TURN)
    _rest(key=_KEY, data={"name": name, "here": {**here, "turn": turn}}, on_moved_change=rested, height="content")


def threshold_of(message: Any, name: str) -> float | None:
    """The threshold that the browser tells; None for one of another chart, or none at all."""
    if not isinstance(message, Mapping) or message.get("name") != name or "turn" not in message:
        return None
    try:
        value = float(message["threshold"])
    except (KeyError, TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None

"""The two halves of the chart on a page: `show` draws it, `follow` is told where its handle rests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.threshold_chart.arrays import Beside

_KEY, _TURN = "threshold_rest", "threshold_turn"
_HERE = Path(__file__).parent
SCRIPTS = ("geometry.mjs", "drawing.mjs", "files.mjs", "share.mjs", "beside.mjs", "hover.mjs", "chart.mjs")


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
    js=joined(*SCRIPTS),
)
_verdict = st.components.v2.component(
    "touchstone_threshold_verdict",
    css=(_HERE / "verdict.css").read_text(encoding="utf-8"),
    js=(_HERE / "verdict.mjs").read_text(encoding="utf-8"),
)


def show(
    name: str,
    arrays: Mapping[str, Any],
    marks: Sequence[Mapping[str, Any]],
    here: Mapping[str, Any],
    *,
    beside: Sequence[Beside] = (),
    link: Mapping[str, str] | None = None,
) -> None:
    """Draw the chart of what `name` stands for (a detector on some labels). It stays while the threshold moves.
    `beside` are other detectors' curves; `link` is what a copied address must say beside the threshold."""
    data = {"name": name, "arrays": arrays, "marks": marks, "here": here, "link": link or {}}
    with st.container(key="threshold-chart"):
        _chart(key="threshold_chart", data=data | {"beside": [asdict(curves) for curves in beside]})


def follow(name: str, here: Mapping[str, Any], on_rest: Callable[[float], None]) -> None:
    """Say what holds at the threshold at hand, here and in the chart; call `on_rest` with the threshold where the
    handle rests.

    It stands in the fragment that the threshold redraws: the chart itself is not sent again. The words follow the
    handle before that.
    """

    def rested() -> None:
        message = st.session_state[_KEY].get("moved")
        threshold = threshold_of(message, name)
        if threshold is not None:
            st.session_state[_TURN] = message["turn"]
            on_rest(threshold)

    turn = st.session_state.get(_TURN)
    data = {"name": name, "here": {**here, "turn": turn}}
    _verdict(key=_KEY, data=data, on_moved_change=rested, height="content")


def threshold_of(message: Any, name: str) -> float | None:
    """The threshold that the browser tells; None for one of another chart, or none at all."""
    if not isinstance(message, Mapping) or message.get("name") != name or "turn" not in message:
        return None
    try:
        value = float(message["threshold"])
    except (KeyError, TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None

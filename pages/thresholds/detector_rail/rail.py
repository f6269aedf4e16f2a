"""The rail of detectors: each with its AUROC as an interval bar and its coverage; a press shows another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.errors import TouchstoneError
from calibrate.report.numbers import count, decimal_interval, decimals, share
from calibrate.types import Interval, Sample
from db import Store
from db.scores import Config
from pages import shell
from pages.components import evidence_choice
from pages.thresholds import scoreboard

RESAMPLED = 5_000  # labels up to which intervals are worked out here: of more they take too long, and are narrow
KEY = "detector_rail"
_HERE = Path(__file__).parent
_rail = st.components.v2.component(
    "touchstone_detector_rail",
    css=(_HERE / "rail.css").read_text(encoding="utf-8"),
    js=(_HERE / "rail.mjs").read_text(encoding="utf-8"),
)


def show(store: Store, runs: Mapping[str, Sequence[Config]], sample: Sample | None, current: str) -> None:
    """The detectors that can be judged, best first, those that could score nothing folded; and the ways to more."""
    areas = _areas(store, runs, sample)
    rows = [_row(store, name, configs, sample, areas.get(name)) for name, configs in runs.items()]
    shown = [row for row in rows if row["scored"] or row["name"] == current]
    silent = [row for row in rows if row not in shown]
    fold = f"{count(len(silent))} could score none of these labels" if silent else ""
    data = {"rows": shown, "silent": silent, "fold": fold, "current": current}
    _rail(key=KEY, data=data, on_chosen_change=lambda: _choose(runs))
    with st.container(horizontal=True, gap="small"):
        st.page_link(shell.page("compare"), label="Compare", icon=":material/compare_arrows:")
        st.page_link(shell.page("ensemble"), label="Combine", icon=":material/join_inner:")


def _choose(runs: Mapping[str, Sequence[Config]]) -> None:
    name = st.session_state[KEY].get("chosen")
    if name in runs:
        st.query_params["detector"] = name
        st.query_params.pop("threshold", None)


def _row(
    store: Store, name: str, configs: Sequence[Config], sample: Sample | None, area: Interval | None
) -> dict[str, Any]:
    sweep = evidence_choice.evidence_of(store, configs[-1], evidence_choice.sample_names(sample)).sweep
    area = area or Interval(sweep.auroc if sweep.can_rank else None)
    words = "too few labels to rank" if area.value is None else f"AUROC {decimals(area.value)}"
    reach = "" if area.low is None else f", 95% {decimal_interval(area.low, area.high)}"
    coverage = f"scores {share(sweep.coverage)} of traffic"
    return {
        "name": name,
        "title": registry.get(name).title,
        "area": "–" if area.value is None else decimals(area.value, 2),
        "value": area.value,
        "low": area.low,
        "high": area.high,
        "coverage": share(sweep.coverage),
        "scored": bool(sweep.scored),
        "help": f"{name}: {words}{reach}; {coverage}",
    }


def _areas(store: Store, runs: Mapping[str, Sequence[Config]], sample: Sample | None) -> Mapping[str, Interval]:
    """The AUROC of each detector with its interval, as on the Scoreboard; none where that would take long."""
    names = evidence_choice.sample_names(sample)
    most = max(evidence_choice.evidence_of(store, configs[-1], names).sweep.n for configs in runs.values())
    if most > RESAMPLED:
        return {}
    try:
        board = scoreboard.load(store, sample.name if sample else None)
    except TouchstoneError:
        return {}
    return {line.name: line.auroc for line in board.lines}

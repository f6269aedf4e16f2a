"""The rail of detectors: each with its AUROC as an interval bar and its coverage; a press shows another one, and a tick
lays it over the one at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.report.names import title_of
from calibrate.report.numbers import count, decimal_interval, decimals, share
from calibrate.report.sentences.tuning.scoreboard import recognizes_model, within_in_words
from calibrate.report.sentences.tuning.scoreboard import silent as silent_in_words
from calibrate.types import Interval, Sample
from calibrate.workflow.tuning.model_identity import MODEL
from calibrate.workflow.tuning.scoreboard import LENGTH, Scoreboard
from db import Store
from db.scores import Config
from pages import shell
from pages.components import evidence_choice
from pages.thresholds import scoreboard

RESAMPLED = 5_000  # labels up to which intervals are worked out here: of more they take too long, and are narrow
MOST = 3  # laid over another: more curves cannot be told apart
KEY = "detector_rail"
OVERLAY = "overlay"  # of the address
_HERE = Path(__file__).parent
_rail = st.components.v2.component(
    "touchstone_detector_rail",
    css=(_HERE / "rail.css").read_text(encoding="utf-8"),
    js=(_HERE / "rail.mjs").read_text(encoding="utf-8"),
)


def show(store: Store, runs: Mapping[str, Sequence[Config]], sample: Sample | None, current: str) -> list[str]:
    """The detectors that can be judged, best first, those that could score nothing folded with why. Returns those that
    are laid over the one at hand."""
    board = _board(store, runs, sample)
    areas = {line.name: line.auroc for line in board.lines} if board else {}
    baseline = max((name for name in (LENGTH, MODEL) if name in areas), key=lambda name: areas[name].value or 0.0,
                   default=None)  # fmt: skip
    silence = silent_in_words(board) if board else {}
    rows = [_row(store, name, configs, sample, areas.get(name)) for name, configs in runs.items()]
    shown = [row for row in rows if row["scored"] or row["name"] == current]
    silent = [row | {"why": silence.get(row["name"], "")} for row in rows if row not in shown]
    overlaid = overlaid_in(st.query_params.get(OVERLAY), [row["name"] for row in shown], current)
    data = {
        "rows": shown,
        "silent": silent,
        "fold": f"{count(len(silent))} could score nothing" if silent else "",
        "current": current,
        "overlaid": overlaid,
        "most": MOST,
        "baseline": areas[baseline].value if baseline else None,
        "notes": [
            *_baseline(baseline, areas),
            *_warn(board, current),
            *(["Tick others to overlay or combine"] if len(shown) > 1 else []),
        ],
    }
    _rail(key=KEY, data=data, on_chosen_change=lambda: _choose(runs), on_overlaid_change=_overlay)
    if overlaid:
        members = [current, *overlaid]
        st.page_link(
            shell.page("ensemble"),
            label=f"Combine these {count(len(members))}",
            icon=":material/join_inner:",
            query_params={"names": ",".join(members), **({"sample": sample.name} if sample else {})},
        )
    return overlaid


def overlaid_in(text: str | None, offered: Sequence[str], current: str) -> list[str]:
    """The detectors that an address lays over the one at hand: at most MOST, each once, none that has no scores."""
    names = [name for name in dict.fromkeys((text or "").split(",")) if name in offered and name != current]
    return names[:MOST]


def _baseline(name: str | None, areas: Mapping[str, Interval]) -> list[str]:
    """What the dotted line on the bars is, the better of what is known without looking at the words; they begin at
    chance."""
    if name is None or areas[name].value is None:
        return []
    return [f"⋮ Baseline: {title_of(name).lower()} {decimals(areas[name].value, 2)}"]


def _warn(board: Scoreboard | None, current: str) -> list[str]:
    """That the detector at hand tells models apart and nothing else."""
    lines = [line for line in board.lines if line.name == current] if board else []
    return [within_in_words(title_of(line.name), line.within) for line in lines if recognizes_model(line.within)]


def _choose(runs: Mapping[str, Sequence[Config]]) -> None:
    name = st.session_state[KEY].get("chosen")
    if name in runs:
        before = st.query_params.get("detector", "")
        st.query_params["detector"] = name
        st.query_params.pop("threshold", None)
        overlaid = overlaid_in(st.query_params.get(OVERLAY), list(runs), name)
        _lay([*overlaid, before] if before in runs and overlaid and len(overlaid) < MOST else overlaid)


def _overlay() -> None:
    _lay([str(name) for name in st.session_state[KEY].get("overlaid") or ()])


def _lay(names: Sequence[str]) -> None:
    if names:
        st.query_params[OVERLAY] = ",".join(names)
    else:
        st.query_params.pop(OVERLAY, None)


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
        "title": title_of(name),
        "area": "–" if area.value is None else decimals(area.value, 2),
        "value": area.value,
        "low": area.low,
        "high": area.high,
        "coverage": share(sweep.coverage),
        "scored": bool(sweep.scored),
        "help": f"{name}: {words}{reach}; {coverage}",
    }


def _board(store: Store, runs: Mapping[str, Sequence[Config]], sample: Sample | None) -> Scoreboard | None:
    """The scoreboard, for areas with intervals; None where it would take long, or there is none."""
    names = evidence_choice.sample_names(sample)
    most = max(evidence_choice.evidence_of(store, configs[-1], names).sweep.n for configs in runs.values())
    if most > RESAMPLED:
        return None
    try:
        return scoreboard.load(store, sample.name if sample else None)
    except TouchstoneError:
        return None

"""The scoreboard: who leads, the table, the baselines below it, and the detectors that scored nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from calibrate.report.numbers import count, exact_share, listed
from calibrate.report.sentences import scoreboard
from calibrate.report.tables.column import as_csv
from calibrate.report.tables.scoreboard import IN_FILES, ON_PAGE
from calibrate.workflow.tuning import scoreboard as step
from db import Store
from pages import shell
from pages.components import tables
from pages.components.text import plain

TABLE = "scoreboard_table"
SEEN = 14  # rows; the rest scrolls


@shell.cached_read("Resampling the labels of every detector …", *shell.EVIDENCE, "points", entries=20)
def load(store: Store, sample: str | None) -> step.Scoreboard:
    return step.scoreboard(store, sample=sample)


def show_leaders(board: step.Scoreboard) -> None:
    """Who leads, in sentences."""
    first, *rest = scoreboard.sentences(board)
    st.markdown(f"**{plain(first)}**")
    if rest:
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in rest))


def choose(board: step.Scoreboard) -> str | None:
    """Show the tables; returns the detector whose row is selected, which is also kept in the address."""
    lines = [line for line in board.lines if not line.baseline]
    baselines = [line for line in board.lines if line.baseline]
    name = _selected(lines) if lines else None
    if baselines:
        st.caption("**Baselines.** What the wording and the length of an answer tell already:")
        # The boxes of the other table are missing here.
        wide = (replace(ON_PAGE[0], width=174), *ON_PAGE[1:])
        st.dataframe(tables.frame(wide, baselines), hide_index=True, placeholder="–", column_config=tables.config(wide))
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        _explain(board)
        st.download_button(
            "Download CSV",
            as_csv(IN_FILES, board.lines),
            "scoreboard.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            type="tertiary",
        )
    return name


def show_silent(board: step.Scoreboard) -> None:
    """Detectors that could score nothing, by reason."""
    reasons: dict[str, list[str]] = {}
    for name, why in scoreboard.silent(board).items():
        reasons.setdefault(why, []).append(step.title_of(name))
    if reasons:
        st.caption("Could score none of these labels: " + "; ".join(
            f"**{plain(listed(names, 9))}** ({plain(why, 200)})" for why, names in reasons.items()
        ) + ".")  # fmt: skip


def _selected(lines: Sequence[step.Line]) -> str:
    names = [line.name for line in lines]
    requested = st.query_params.get("detector") or st.session_state.get("detector_at_hand")
    place = names.index(requested) if requested in names else 0
    event = st.dataframe(
        tables.frame(ON_PAGE, lines),
        hide_index=True,
        placeholder="–",
        column_config=tables.config(ON_PAGE),
        height=40 + 35 * min(len(lines), SEEN),
        key=TABLE,
        on_select="rerun",
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [place]}},
    )
    chosen: Mapping[str, Any] = event["selection"]
    name = names[int((chosen["rows"] or [place])[0])]
    st.session_state["detector_at_hand"] = st.query_params["detector"] = name
    return name


def _explain(board: step.Scoreboard) -> None:
    """Which labels these are, and where precision and recall are measured."""
    target = exact_share(step.DEFAULT.number)
    facts = [f"{count(board.n, 'label')}, {count(board.positives)} hallucinated"]
    if board.refused:
        facts.append(f"{count(board.refused, 'refusal')} left out")
    st.caption(
        f"{'; '.join(facts)}. Intervals are 95%. Precision and recall are at the threshold that was *saved*, else "
        f"(*here*) at the one that finds most with a measured precision of {target}, chosen on these same labels, "
        "which flatters it; *nearest* where none reaches that. Costs count every call as paid for.",
        width=900,
    )

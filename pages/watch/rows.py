"""The rows of Watch: what is due stands as a button, the rest of what can be done behind "More"."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.watching import live as sentences
from calibrate.workflow.watching.live import Due, LiveThreshold
from calibrate.workflow.week.standing import Standing
from pages import shell
from pages.components import live_rows
from pages.components.text import label
from pages.watch import details

DRIFT = "Look at drift"
_PAGES = {
    Due.CHOOSE: "tune",
    Due.RECALIBRATE: "recalibrate",
    Due.RECHECK: "recheck",
    Due.GATE: "sample",
    Due.SCORE: "detect",
}
_ICONS = {
    Due.CHOOSE: ":material/tune:",
    Due.RECALIBRATE: ":material/autorenew:",
    Due.RECHECK: ":material/fact_check:",
    Due.GATE: ":material/casino:",
    Due.SCORE: ":material/play_circle:",
}


def show(standing: Standing, now: datetime) -> bool:
    """Draw the rows, the one that needs most first. Returns whether one of them has the page's primary button."""
    if not standing.thresholds:
        st.caption(f"Nothing of v{standing.version} may flag: every tier is off.")
    for place, row in enumerate(standing.thresholds):
        with st.container(border=True, key=f"live-{place}"):
            facts, actions = st.columns([6, 1.15], vertical_alignment="center")
            facts.html(live_rows.watched(row, now))
            with actions:
                _actions(row, first=place == 0)
    return any(row.due for row in standing.thresholds)


def _actions(row: LiveThreshold, *, first: bool) -> None:
    """The action that is due, and a menu of the others. An ensemble is rechecked through its parts."""
    name = title_of(row.name)
    due = row.due
    if due is not None and st.button(
        sentences.ACTIONS[due], type="primary" if first else "secondary", icon=_ICONS[due], key=f"due-{row.name}",
        disabled=not shell.may_open(_PAGES[due]), help=f"Of {label(name)}", width="stretch",
    ):  # fmt: skip
        _go(due, row)
    others = [action for action in (Due.RECHECK, Due.RECALIBRATE) if action != due and shell.may_open(_PAGES[action])]
    words = {sentences.ACTIONS[action]: action for action in others} if not row.ensemble else {}
    options = [*words, *([] if row.ensemble else [DRIFT])]
    if not options:
        return
    chosen = st.menu_button(
        "More", options, key=f"more-{row.name}", help=f"Of {label(name)}", width="stretch", type="tertiary"
    )
    if chosen == DRIFT:
        details.open_view("drift", detector=row.name)
        st.rerun()
    elif chosen is not None:
        _go(words[chosen], row)


def _go(action: Due, row: LiveThreshold) -> None:
    address = {} if action in (Due.SCORE, Due.GATE) else {"detector": row.name}
    if action == Due.RECHECK and row.segment is not None:
        address["segment"] = row.segment
    st.switch_page(shell.page(_PAGES[action]), query_params=address)

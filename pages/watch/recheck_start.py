"""Starting a recheck: the precision to hold, and drawing more flagged traces."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.watching import recheck as sentences
from calibrate.thresholds.model import DetectorEntry
from calibrate.workflow.releasing.history import promised_precision
from calibrate.workflow.watching import recheck as step
from calibrate.workflow.watching.recheck_plan import RECENT, look
from calibrate.workflow.watching.recheck_segment import in_segment
from db import Store
from pages import shell
from pages.components.text import plain
from pages.watch import recheck_screen


def begin(store: Store, detector: str, model: str | None, segment: str | None) -> None:
    """Begin the recheck. A second press finds it under way."""
    with shell.errors_kept("recheck_problem"):
        target = st.session_state.get("recheck_target")
        step.begin(
            store, detector, model=model, segment=segment, target=None if target is None else target / 100,
            since=_since(), by=shell.user(), now=shell.now(),
        )  # fmt: skip


def _since() -> datetime | timedelta:
    """When the chosen day begins; without one a week before the newest trace."""
    chosen = st.session_state.get("recheck_since")
    return datetime.combine(chosen, time(), UTC) if chosen else RECENT


def more(store: Store, detector: str, model: str | None, segment: str | None) -> None:
    with shell.errors_kept("recheck_problem"):
        if recheck := step.open_one(store, detector, model=model, segment=segment):
            step.more(store, recheck, now=shell.now())


def offer(
    store: Store, entry: DetectorEntry, detector: str, model: str | None, segment: str | None, *, again: bool
) -> None:
    """The form that starts a recheck: the precision to test, and how a recheck works."""
    promised = promised_precision(in_segment(detector, entry, segment))
    if not again:
        st.markdown(
            "You label what it flags, one trace at a time. After each label this page says whether it is decided: you "
            "may look and stop whenever you like, and it is wrong in at most 5 of 100 rechecks."
        )
    usual = look(store, detector, model=model, segment=segment, now=shell.now())
    # The widget below says another day; what it says is in the session before it is drawn.
    traffic = look(store, detector, model=model, segment=segment, since=_since(), now=shell.now())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = st.number_input(
            "Precision to hold, %", min_value=5, max_value=95, step=5, width=170,
            value=None if promised is None else min(95, max(5, round(100 * promised))), key="recheck_target",
            placeholder="say which",
        )  # fmt: skip
        st.date_input(
            "Traffic since (UTC)", value=usual.where.since and usual.where.since.date(), key="recheck_since",
            format="YYYY-MM-DD", width=170,
            help="The last 7 days unless you say otherwise: weeks pooled together hide what fell in the last one. It "
            "never begins before the release.",
        )  # fmt: skip
        st.button(
            f"Recheck {plain(title_of(detector))} again" if again else f"Recheck {plain(title_of(detector))}",
            type="secondary" if again else "primary",
            icon=":material/fact_check:",
            disabled=target is None or not traffic.flagged,
            on_click=begin,
            args=(store, detector, model, segment),
        )
    st.caption(f"{sentences.traffic(traffic)}.")
    if not traffic.flagged:
        st.markdown(
            "Nothing is left to draw there. A recheck never looks at traffic from before the release: score newer "
            "traffic, or come back once there is more."
        )
    if promised is None:
        st.caption(
            f"No precision was promised for it. When it was released, {recheck_screen.when_released(entry.metrics)}."
        )

"""The live release on the home page: what it holds, how old it is, and which models it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from calibrate.report.numbers import ago, count, day, estimate, exact_share, labelled, limit, share
from calibrate.report.sentences import point_state
from calibrate.thresholds.model import DetectorEntry
from calibrate.thresholds.states import Judged
from calibrate.types import Interval, StateReason
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.releasing.unknown_models import UnknownModel
from db.releases import Release
from pages import shell
from pages.components.text import plain, visible


def show_release(release: Release | None, now: datetime, live: Sequence[Judged] = ()) -> None:
    """What the live release holds, with what is known now of each threshold."""
    if release is None:
        st.markdown("**Live thresholds**")
        st.caption("Nothing is released yet. A release is the thresholds file that your runtimes read.")
        return
    file = read_release(release)
    st.markdown(f"**Live thresholds: v{release.version}**")
    labels = labelled(file.data.n, file.data.positives)
    st.caption(f"Released {ago(release.released_at, now)} by {plain(release.released_by, 60)}, from {labels}.")
    if release.note:
        st.text(visible(release.note, 200))
    judged = {each.name: each for each in live}
    rows = [_row(name, entry, judged.get(name)) for name, entry in sorted(file.detectors.items())]
    st.dataframe(rows, hide_index=True, height=min(38 + 35 * len(rows), 300), key="live_thresholds")


def show_unknown_models(models: Sequence[UnknownModel], release: Release | None) -> None:
    """Models that the release was made without: its thresholds may not hold for them."""
    if release is None:
        return
    for model in models[:3]:
        with st.container(border=True):
            text, link = st.columns([5, 1], vertical_alignment="center")
            name = f"**{plain(model.name, 60)}**"
            rate = f"{share(model.share)} of the traffic since {day(model.since)}"
            fact = f"appeared on {day(model.appeared)} ({rate})" if model.appeared else f"answers {rate}"
            text.markdown(
                f":material/warning: {name} {fact}. v{release.version} was made without it: "
                "its thresholds are not known to hold there."
            )
            link.page_link(
                shell.page("sample"), label="Sample it", icon=":material/casino:", query_params={"model": model.name}
            )
    if len(models) > 3:
        more = len(models) - 3
        are = "is" if more == 1 else "are"
        st.caption(f"{count(more, 'more model')} of today's traffic {are} not in its labels either.")


def show_known_bad(judged_bad: Sequence[Judged]) -> None:
    """Live thresholds that are known to be bad, and why they were released all the same. What a recheck found has a
    line of its own."""
    for judged in judged_bad:
        if judged.state.why == StateReason.RECHECK_FELL:
            continue
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            reason = f" *Released because:* {plain(judged.reason, 200)}" if judged.reason else ""
            why = plain(point_state.sentence(judged.state), 400)
            st.markdown(f":material/block: **{plain(judged.name, 60)}**: {why}{reason}", width="stretch")
            st.page_link(
                shell.page("tune"), label="Look at it", icon=":material/tune:", query_params={"detector": judged.name}
            )


def _row(name: str, entry: DetectorEntry, judged: Judged | None) -> dict[str, str]:
    return {
        "Detector": name,
        "State": point_state.headline(judged.state) if judged else "",
        "Flags at": limit(entry.threshold, entry.flag_when),
        "Precision": _estimate(entry.metrics.precision),
        "Strength": _strength(entry),
        "Recall": _estimate(entry.metrics.recall),
        "Tier": entry.tier,
        "Reason": visible(judged.reason, 200) if judged else "",
    }


def _strength(entry: DetectorEntry) -> str:
    """How sure the precision is: "certified ≥ 70%", "measured"."""
    guarantee = entry.guarantee
    return f"{entry.strength} ≥ {exact_share(guarantee.target)}" if guarantee else entry.strength


def _estimate(figure: Interval) -> str:
    return estimate(figure.value, figure.low, figure.high)

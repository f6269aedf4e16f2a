"""Thresholds per segment beside one for all: the table, whether they find more, and the way to save them if so."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import point_state as states
from calibrate.report.sentences.tuning import segments as sentences
from calibrate.report.sentences.tuning.certification import certified_segments
from calibrate.report.tables.segments import COLUMNS
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.segments.choosing import KINDS
from calibrate.types import PointState
from calibrate.workflow.evidence import evidence
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.tuning import segments as step
from db import Store
from pages import shell
from pages.components import evidence_choice, tables
from pages.components.text import plain

USUAL = "precision>=0.7"  # where the policy of the page sets no thresholds per segment


def show(store: Store, data: evidence.Evidence, policy: Policy, names: evidence_choice.SampleNames) -> None:
    """The segments by what is chosen here, on the labels of the page and by its policy."""
    policy = policy if policy.kind in KINDS else parse(USUAL)
    choices = step.segmented_by(store)
    by = st.selectbox(
        "Segments by",
        choices,
        key="segments_by",
        format_func=lambda name: sentences.name_by(name).capitalize(),
        width=260,
    )
    try:
        segmented, state = _segmented(store, data.config.id, names, str(policy), by)
    except BadInput as error:  # no labelled trace says it, or the labels allow no choice
        st.caption(plain(f"{error}.", 500))
        return
    st.markdown(plain(f"{sentences.verdict(segmented)}.", 600))
    tables.show_wide(COLUMNS, segmented.rows)
    for note in (sentences.fallback(segmented), segmented.own_point and sentences.OUT_OF_FOLD):
        if note:
            st.caption(plain(f"{note}.", 500))
    saved = store.points.latest().get(data.config.name)
    if saved is not None and saved.config_id == data.config.id:
        for line in certified_segments(saved.data.segments, data.flag_when):
            st.caption(plain(f"{line}.", 500))
    _offer(store, data, segmented, state)


def _offer(store: Store, data: evidence.Evidence, segmented: step.Segmented, state: PointState | None) -> None:
    """The button, where they are offered; without it the page's own saves one threshold for all."""
    shell.show_kept_error("segments_problem")
    if not segmented.offered:
        return
    saved = store.points.latest().get(data.config.name)
    if saved is not None and saved.config_id == data.config.id and saved.data.segments == segmented.segments:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(":material/check: Saved with thresholds per segment", width="content")
            st.page_link(shell.page("release"), label="Release it", icon=":material/verified:")
        return
    reason = ""
    if state is not None and state.known_bad:
        st.warning(plain(states.in_short(state), 400), icon=":material/block:")
        reason = st.text_input("Why shall they be saved all the same?", key="segments_reason")
    st.button(
        "Save thresholds per segment",
        icon=":material/bookmark_add:",
        on_click=_save,
        args=(store, data, segmented, state, reason),
        disabled=state is None or (state.known_bad and not reason.strip()),
    )


@shell.cached_read("Fitting thresholds per segment …", *shell.EVIDENCE, "rechecks")
def _segmented(
    store: Store, config_id: int, names: evidence_choice.SampleNames, policy: str, by: str
) -> tuple[step.Segmented, PointState | None]:
    """The thresholds, and what is known of them."""
    data = evidence_choice.evidence_of(store, store.scores.get_config(config_id), names)
    segmented = step.segment_labels(store, data, parse(policy), by=by)
    return segmented, known_bad.state_of_segments(store, data, segmented)


def _save(
    store: Store, data: evidence.Evidence, segmented: step.Segmented, state: PointState | None, reason: str
) -> None:
    """Save them. A second press saves the same once more."""
    with shell.errors_kept("segments_problem"):
        step.save(store, data, segmented, state=state, reason=reason, by=shell.user(), now=shell.now())
        st.session_state["tune_stale"] = True

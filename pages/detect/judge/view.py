"""A judge beside people, in a view of its own: where they differ most, and what to do about it."""

from __future__ import annotations

import streamlit as st

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.report.sentences.detection import aligning as sentences
from calibrate.types import TraceFilter
from calibrate.workflow.aligning.judges import alignable
from calibrate.workflow.aligning.side_by_side import SideBySide, side_by_side
from db import Store
from pages import shell
from pages.components.run_view import is_going, show_progress
from pages.components.text import plain
from pages.detect import detector_detail
from pages.detect.judge import differences, prompt

PARAM = "view"  # of the address
RUN, PEOPLE = "run", "people"
VIEWS = {RUN: "Settings and run", PEOPLE: "Judge and people"}
_KEY, _SEEN = "judge_view", "judge_view_address"  # in the session


def is_open(name: str) -> bool:
    """Whether the view beside people is chosen, which the address keeps. There is none for a detector that cannot be
    aligned."""
    if name not in alignable():
        st.query_params.pop(PARAM, None)
        return False
    requested = st.query_params.get(PARAM)
    if _KEY not in st.session_state or requested != st.session_state.get(_SEEN):
        st.session_state[_KEY] = requested if requested in VIEWS else RUN
    view = st.segmented_control(
        "View", list(VIEWS), format_func=VIEWS.__getitem__, required=True, key=_KEY, label_visibility="collapsed"
    )
    if view == PEOPLE:
        st.query_params[PARAM] = PEOPLE
    else:
        st.query_params.pop(PARAM, None)
    st.session_state[_SEEN] = st.query_params.get(PARAM)
    return bool(view == PEOPLE)


def show(store: Store, judge: Detector) -> None:
    """Judge and people side by side on all labels, and a prompt from labels; or the run that is missing for it."""
    name = judge.name
    st.header(plain(judge.title), anchor=False)
    newest = next(iter(store.runs.recent(1)), None)
    if newest and is_going(newest):
        show_progress(store, newest.id)
        return
    both = _side_by_side(store, name) if store.scores.configs(name) else None
    if both is None or not both.labels:
        _show_nothing_yet(store, name)
        return
    if before := sentences.scored_before(both):
        _offer_run(store, name, before)
    st.markdown(f"**{plain(sentences.apart(both))}**")
    answers, steps = st.columns([5, 3], gap="large")
    with answers:
        differences.show(store, both, name)
    with steps:
        st.markdown("**1. Say it in the guidelines**")
        st.caption("Where people are right, the guidelines may not say it clearly enough for a judge.")
        st.page_link(shell.page("guidelines"), label="Improve the guidelines", icon=":material/menu_book:")
        st.markdown("**2. Give the judge a prompt from guidelines and labels**")
        prompt.show(store, name, stale=before is not None)


def _show_nothing_yet(store: Store, name: str) -> None:
    if store.traces.count(TraceFilter(label="labelled"), limit=1):
        _offer_run(store, name, "Judge and people have no answer in common yet.")
        return
    st.markdown("There are no labels yet. Here you would see where the judge and your people differ most.")
    st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")


def _offer_run(store: Store, name: str, why: str) -> None:
    with st.container(border=True, key="judge-run"):
        st.markdown(f":material/info: **{plain(why)}**")
        detector_detail.offer_run(store, registry.make(name), {"labelled": True}, shown=None)


@shell.cached_read("Putting judge and people side by side …", *shell.EVIDENCE, "team", "guides", entries=20)
def _side_by_side(store: Store, name: str) -> SideBySide:
    return side_by_side(store, name, limit=differences.MORE)

"""Details of the Thresholds page: what is looked at now and then, each worked out when its tab is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.labelling import kinds as kinds_in_words
from calibrate.report.sentences.tuning.threshold_figures import false_positive_rate
from calibrate.report.tables.kinds import columns
from calibrate.types import OperatingPoint, Sample
from calibrate.workflow.evidence import evidence
from calibrate.workflow.evidence.kinds import figures_by_kind
from calibrate.workflow.labelling import guides
from db import Store
from db.scores import Config
from pages import shell
from pages.components import charts, evidence_choice, tables
from pages.components.text import plain
from pages.thresholds import (
    comparison,
    reliability,
    scoreboard,
    tune_charts,
    tune_figures,
    tune_setting,
)
from pages.thresholds.tabs import by_segment

PARAM = "details"  # of the address: the tab that is open
BOX, TABS, SEEN = "tune-details", "tune-details-tab", "tune_details_seen"  # in the session


@dataclass(frozen=True)
class Beneath:
    """What the details are about: `marks` and `per_day` are None and unknown where no threshold can be chosen."""

    data: evidence.Evidence
    marks: Sequence[charts.Mark] | None
    per_day: float | None
    sample: Sample | None
    runs: Mapping[str, Sequence[Config]]
    overlaid: Sequence[str]


def drawn_for(setting: tune_setting.Setting) -> tuple[bool, float | None]:
    """What the page is drawn for beside what follows the handle: by hand or not, and the threshold where a tab is open
    that is about it."""
    return setting.by_hand, setting.threshold if st.query_params.get(PARAM) in OF_THE_THRESHOLD else None


@st.fragment
def show(store: Store, what: Beneath) -> None:
    """Closed, or open at the tab that the address names."""
    with shell.guarded():
        offered = {key: words for key, words in NAMES.items() if what.marks is not None or key in ALWAYS}
        in_address = st.query_params.get(PARAM)
        if in_address in offered and in_address != st.session_state.get(
            SEEN
        ):  # came with an address, and not by a press here
            st.session_state[BOX], st.session_state[TABS] = True, offered[in_address]
        box = st.expander("Details", key=BOX, on_change="rerun")
        if not box.open:
            st.query_params.pop(PARAM, None)
            st.session_state[SEEN] = None
            return
        with box:
            for key, tab in zip(offered, st.tabs(list(offered.values()), key=TABS, on_change="rerun"), strict=True):
                if tab.open:
                    with tab:
                        _SHOWN[key](store, what)
                    st.session_state[SEEN] = key
                    if in_address != key:
                        st.query_params[PARAM] = key


def _words(store: Store, what: Beneath) -> None:
    point = _point(store, what)
    tune_figures.show_figures(point, what.per_day)


def _kinds(store: Store, what: Beneath) -> None:
    point = _point(store, what)
    figures = figures_by_kind(store, what.data, point.threshold)
    names = {kind.key: kind.name for kind in guides.known_kinds(store)}
    sentence = kinds_in_words.sentence(title_of(what.data.config.name), figures, names)
    if sentence is None:
        st.markdown("**No label names a kind of error yet.**")
        st.caption("Mark spans with kinds, or press a kind after Hallucinated, while you label.")
        st.page_link(shell.page("label"), label="Label", icon=":material/check_box:")
        return
    st.markdown(plain(f"{sentence}.", 600))
    shown = columns(names)
    st.dataframe(
        tables.frame(shown, figures.kinds), hide_index=True, column_config=tables.config(shown), width="content"
    )
    st.caption(f"{kinds_in_words.NOTE}.")


def _point(store: Store, what: Beneath) -> OperatingPoint:
    return tune_setting.point_of(store, what.data, tune_setting.setting_for(store, what.data))


def _curve(store: Store, what: Beneath) -> None:
    tune_charts.show_curve(what.data, what.marks or [])


def _false_positives(store: Store, what: Beneath) -> None:
    point = _point(store, what)
    rate = false_positive_rate(point)
    st.markdown(f"**{rate.large}** of clean traces flagged at this threshold :gray[{plain(rate.note)}]")
    tune_charts.show_false_positives(what.data, point.threshold)


def _percent(store: Store, what: Beneath) -> None:
    reliability.show(store, what.data.config.name, _name(what))


def _segments(store: Store, what: Beneath) -> None:
    policy = tune_setting.setting_for(store, what.data).rule
    by_segment.show(store, what.data, policy, evidence_choice.sample_names(what.sample))


def _scoreboard(store: Store, what: Beneath) -> None:
    scoreboard.show(store, _name(what))


def _compare(store: Store, what: Beneath) -> None:
    comparison.show(store, what.runs, what.sample, [what.data.config.name, *what.overlaid])


def _name(what: Beneath) -> str | None:
    return what.sample.name if what.sample else None


NAMES = {
    "words": "In words",
    "kinds": "By kind",
    "curve": "Precision and recall",
    "alarms": "False alarms",
    "percent": "In percent",
    "segments": "By segment",
    "scoreboard": "Scoreboard",
    "compare": "Side by side",
}
OF_THE_THRESHOLD = ("words", "kinds", "alarms")
ALWAYS = ("scoreboard", "compare")
_SHOWN: dict[str, Callable[[Store, Beneath], None]] = {
    "words": _words,
    "kinds": _kinds,
    "curve": _curve,
    "alarms": _false_positives,
    "percent": _percent,
    "segments": _segments,
    "scoreboard": _scoreboard,
    "compare": _compare,
}

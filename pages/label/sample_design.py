"""How the traces are drawn: the design, and what the design needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from calibrate import registry
from calibrate.orientation import SIGNS
from calibrate.report.names import title_of
from calibrate.report.numbers import count, number
from calibrate.report.sentences.labelling import drawing
from calibrate.stats.sampling.designs import Cut
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.sampling import sample as step
from calibrate.workflow.sampling.frame import ENOUGH_SCORED, scored_configs
from db import Store
from db.scores import Config
from pages import shell
from pages.components.text import visible

RANDOM, STRATIFIED, OCTAVE, UNCERTAIN, FLAGGED = "random", "stratified", "octave", "uncertain", "fresh-flagged"
PLAIN = {OCTAVE: drawing.FAVOUR, RANDOM: drawing.AT_RANDOM}
OTHERS = {STRATIFIED: "By group (stratified)", UNCERTAIN: "Near a threshold", FLAGGED: "Flagged by a threshold"}
ABOUT = {
    RANDOM: "Every trace is equally likely. Needs no scores; few of its labels are hallucinated where few answers are.",
    STRATIFIED: "Every group gets labels, small ones more than their share. The figures are weighted back.",
    OCTAVE: "The more suspicious a trace is to the detectors, the likelier it is drawn; none is left out. The figures "
    "are weighted back.",
    UNCERTAIN: "The nearer a trace scores to the threshold, the likelier it is drawn; none is left out.",
    FLAGGED: "Of what a threshold flags, traces without a label and in no sample. Tells its precision and nothing of "
    "what it misses.",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A design with its options. `scored` traces of the window have scores; `ready` is False if it needs some first."""

    design: str
    scored: int
    by: str | None = None
    cut: Cut | None = None
    ready: bool = True

    @property
    def fresh(self) -> bool:
        return self.design == FLAGGED


def choose_plain(store: Store, where: TraceFilter, size: int, other: Choice | None) -> Choice:
    """One of the two designs with a plain name, unless Advanced asks for `other`; by default octave once enough of the
    window is scored."""
    scored = _scored(store, where)
    usual = OCTAVE if size and scored >= ENOUGH_SCORED * size else RANDOM
    options = [usual, *(design for design in PLAIN if design != usual)]
    design = st.segmented_control(
        "Which traces?", options, default=usual, required=True, format_func=PLAIN.__getitem__,
        key=f"draw_design_{usual}", disabled=other is not None, help=" ".join(ABOUT[each] for each in options),
    )  # fmt: skip
    if other is not None:
        st.caption(f"Advanced asks for another design: {OTHERS[other.design].lower()}.")
        return other
    if design == RANDOM:
        if usual == RANDOM and size:
            about = "About " if size > step.COUNTED else ""  # the step estimates then
            _score_first(
                f"{about}{count(scored)} of {count(size, 'trace')} have a score; once half have, fewer labels tell as "
                "much."
            )
        return Choice(design, scored)
    if not scored:
        _score_first("**Score the window first:** no trace of it has a score to be suspicious by.")
        return Choice(design, scored, ready=False)
    return Choice(design, scored)


def choose_other(store: Store, where: TraceFilter) -> Choice | None:
    """A design without a plain name, with what it needs to know; None where none is asked for."""
    design = st.selectbox(
        "Another design", list(OTHERS), index=None, placeholder="As chosen above", format_func=OTHERS.__getitem__,
        key="draw_other",
    )  # fmt: skip
    if design is None:
        return None
    st.caption(ABOUT[design])
    scored = _scored(store, where)
    if design == STRATIFIED:
        names = ["model", "operation", *store.traces.attribute_names()]
        by = st.selectbox("By", names, format_func=lambda name: visible(name, 60), key="draw_by")
        return Choice(design, scored, by=by)
    if not scored:
        _score_first("**Score the window first:** no trace of it has a score to draw by.")
        return Choice(design, scored, ready=False)
    return Choice(design, scored, cut=_choose_cut(store))


@shell.cached_read("Ranking the window …", *shell.EVIDENCE, entries=64)
def strata_of(store: Store, where: TraceFilter, choice: Choice) -> Mapping[str, int]:
    """How many traces each stratum of the design holds."""
    return step.strata(store, choice.design, where, by=choice.by, cut=choice.cut, fresh=choice.fresh)


def in_words(sample: Sample) -> str:
    """The design of a sample: "octave", "stratified by model", "near Token overlap ≤ 0.4"."""
    if sample.by:
        return f"{sample.design} by {visible(sample.by, 40)}"
    cut = sample.options.cut
    if not cut:
        return sample.design
    sign = SIGNS[registry.get(cut.name).flag_when] if cut.name in registry.names() else "at"
    limit = f"{title_of(cut.name)} {sign} {number(cut.threshold)}"
    if sample.design == UNCERTAIN:
        return f"near {limit}"
    return f"{'fresh, ' if sample.options.fresh else ''}flagged by {limit}"


def _choose_cut(store: Store) -> Cut:
    """A detector and a threshold; by default the saved one, else that of the common recipe."""
    left, right = st.columns([3, 2])
    configs = {config.name: config for config in scored_configs(store)}
    name = left.selectbox("Detector", list(configs), format_func=title_of, key="draw_detector")
    config = configs[name]
    sign = SIGNS[registry.get(name).flag_when]
    threshold = right.number_input(
        f"Threshold (flags {sign})", value=_first(store, config), step=0.01, format="%.4g", key=f"draw_cut_{name}"
    )
    return Cut(config.id, float(threshold))


def _first(store: Store, config: Config) -> float:
    chosen = store.points.latest().get(config.name)
    return float(chosen.point.threshold if chosen else registry.get(config.name).usual_threshold)


def _score_first(why: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(why, width="content")
        st.page_link(shell.page("detect"), label="Score all traces", icon=":material/play_circle:", width="content")


@shell.cached_read("Counting scores …", "traces", "scores", entries=64)
def _scored(store: Store, where: TraceFilter) -> int:
    return step.scored(store, where)

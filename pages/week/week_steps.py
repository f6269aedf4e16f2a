"""The week on the home page: the one thing to do next, and six steps with their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import streamlit as st

from calibrate.report.numbers import ago, count
from calibrate.report.sentences.labelling import labels
from calibrate.report.sentences.watching import week as sentences
from calibrate.types import Sample, StateReason
from calibrate.workflow.labelling import assignment
from calibrate.workflow.watching.live import Due
from calibrate.workflow.week.next_steps import Step
from calibrate.workflow.week.week import Week
from pages import shell
from pages.components import labels_line
from pages.components.text import plain

_DONE, _NOW, _TODO = ":material/check:", ":material/arrow_forward:", ":material/circle:"


@dataclass(frozen=True, slots=True)
class Card:
    """One step: a headline, a second line in small print, and its progress (0 to 1) where that is known."""

    step: Step
    title: str
    done: bool
    headline: str
    detail: str = ""
    progress: float | None = None


@dataclass(frozen=True, slots=True)
class Next:
    """What to do, the button that leads there, and the address it gives the page."""

    sentence: str
    button: str
    page: str
    address: Mapping[str, str] = field(default_factory=dict)


def show_next(state: Week) -> None:
    """What to do now, with the page's one primary button, and what is open besides."""
    todo, blind = next_of(state), shell.person().is_blind
    if blind and todo.page != "label" and state.sample and _is_left(state.sample):
        todo = Next(plain(sentences.own_turn(state.sample.name)), "Label", "label", {"sample": state.sample.name})
    theirs = not shell.may_open(todo.page)
    sentence = sentences.elsewhere(state) if theirs and blind else todo.sentence
    with st.container(border=True, key="week_next", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**Next** &ensp; {sentence}", width="content")
            about = "Your role does not open that page: it is somebody else's turn." if theirs else None
            arrow = ":material/arrow_forward:"
            if st.button(todo.button, type="primary", icon=arrow, icon_position="right", disabled=theirs, help=about):
                st.switch_page(shell.page(todo.page), query_params=todo.address)
        if not blind and (then := sentences.then(state)):
            st.caption(f"Then: {then}.")


def _is_left(sample: Sample) -> bool:
    """Whether a trace of the sample waits for this person, as it is shared."""
    store = shell.store()
    if assignment.assignment_of(store, sample).mode != "everyone":
        return assignment.wanting(store, sample, shell.user(), now=shell.now()) > 0
    return store.labels.place(sample.id, shell.user()).left > 0


_WIDTH = 165  # pixels of a step: six stand in a line on a desk, two on a telephone
_STYLE = """<style>
.st-key-week_steps [data-testid="stPageLink-NavLink"] {padding: .1rem .4rem .1rem 0; background: none}
.st-key-week_steps [data-testid="stCaptionContainer"] p {margin-left: 1.75rem; line-height: 1.3}
</style>"""


def show_steps(state: Week, now: datetime) -> None:
    """The six steps in one line, each a way to its page; what is known of a step stands below its name."""
    with st.container(key="week_steps", horizontal=True, horizontal_alignment="distribute"):
        st.html(_STYLE, width="content")
        for card in cards(state, now):
            hidden = card.step == "label" and shell.person().is_blind
            with st.container(width=_WIDTH, gap=None):
                st.page_link(
                    shell.page(card.step),
                    label=f"**{card.title}**",
                    icon=_DONE if card.done else _NOW if card.step == state.next else _TODO,
                    help=None if hidden else card.detail or None,
                    disabled=not shell.may_open(card.step),
                )
                st.caption(_own(state) if hidden else card.headline)


def _own(state: Week) -> str:
    """How far this person is: a count of everybody's labels would tell what others say."""
    return f"{count(state.place.labelled)} of {count(state.place.size)} by you" if state.place else ""


def next_of(state: Week) -> Next:
    """The one thing to do next, in the words of `weekly`, and where it is done."""
    todo = sentences.todo(state, state.next)
    about = f"**{plain(todo.about, 60)}**: " if todo.about else ""
    page, address = _place(state)
    return Next(f"{about}{plain(todo.sentence, 700)}", todo.button, page, address)


def _place(state: Week) -> tuple[str, Mapping[str, str]]:
    """The page where the next step is done, and what its address says."""
    if state.next == "settle":
        # Of every sample and of none: the count is of the whole store.
        return "agreement", {"view": "disputed", "sample": labels_line.EVERYTHING}
    if state.next == "fix":
        worst = state.known_bad[0]
        fell = worst.state.why == StateReason.RECHECK_FELL
        return ("recalibrate" if fell else "tune"), {"detector": worst.name}
    if state.next == "label" and state.gap and not sentences.is_aside(state):
        return "label", {"sample": state.gap, "gap": "first"}
    if state.next == "check" and state.checks_due:
        first = state.checks_due[0]
        if first.due == Due.GATE:
            return "sample", {}
        segment = {"segment": first.segment} if first.segment is not None else {}
        return ("recheck" if first.due == Due.RECHECK else "recalibrate"), {"detector": first.name, **segment}
    if state.next == "sample" and state.sample is not None and not state.fresh:
        return "import", {}
    return {"check": "watch", "done": "traces"}.get(state.next, state.next), {}


def cards(state: Week, now: datetime) -> list[Card]:
    return [_import(state), _sample(state), _label(state), _detect(state), _tune(state), _release(state, now)]


def _import(state: Week) -> Card:
    fresh = f"{count(state.new_this_week)} since Monday" if state.new_this_week else "none since Monday"
    return Card("import", "Import", state.traces > 0, count(state.traces, "trace"), fresh)


def _sample(state: Week) -> Card:
    if state.sample is None:
        return Card("sample", "Draw", False, "Nothing drawn yet")
    drawn = f"{count(state.sample.size)} of {count(state.sample.pool)}"
    return Card("sample", "Draw", True, drawn, plain(state.sample.name, 40))


def _label(state: Week) -> Card:
    counts = state.at_hand.counts
    if state.sample is None:
        headline = count(state.labelled, "trace") if state.labelled else "No labels yet"
        return Card("label", "Label", False, headline, "labelled outside a sample" if state.labelled else "")
    size = state.sample.size
    nothing_left = state.place is not None and state.place.position is None
    done = state.labelled >= size or nothing_left
    progress = None if done or not counts.labelled else counts.labelled / size  # as the headline counts
    return Card("label", "Label", done, labels.labelled(counts), _traffic(state), progress)


def _traffic(state: Week) -> str:
    """What the labels say of the traffic, for the tooltip."""
    return labels.prevalence(state.at_hand.prevalence.share) or ""


def _detect(state: Week) -> Card:
    run = state.run
    if run and run.status in ("queued", "running"):
        part = run.done / run.total if run.total else 0.0
        interrupted = run.status == "queued" and run.started_at is not None
        return Card(
            "detect", "Detect", False, f"Run {run.id} {'was interrupted' if interrupted else 'is going'}", "", part
        )
    if not state.scored_detectors:
        return Card("detect", "Detect", False, "No scores yet")
    silent = len(state.silent_detectors)
    detail = f"{silent} could score nothing" if silent else "all of them scored"
    return Card("detect", "Detect", True, count(len(state.scored_detectors), "detector"), detail)


def _tune(state: Week) -> Card:
    chosen = len(state.saved_points)
    if not chosen and state.release is not None:
        return Card("tune", "Thresholds", False, "None since the sample", f"v{state.release.version} is live")
    if not chosen:
        return Card("tune", "Thresholds", False, "No threshold yet")
    return Card("tune", "Thresholds", True, count(chosen, "threshold"), plain(", ".join(state.saved_points), 60))


def _release(state: Week, now: datetime) -> Card:
    release = state.release
    if release is None:
        return Card("release", "Release", False, "Nothing released yet")
    current = state.sample is None or release.released_at >= state.sample.created_at
    return Card("release", "Release", current, f"v{release.version}", ago(release.released_at, now))

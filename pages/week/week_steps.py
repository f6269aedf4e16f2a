"""The week on the home page: six steps with their state, and the one thing to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import streamlit as st

from calibrate.report.numbers import ago, count, duration, listed
from calibrate.report.sentences import labels as sentences
from calibrate.report.sentences import point_state
from calibrate.types import StateReason
from calibrate.workflow.week.next_steps import Step
from calibrate.workflow.week.week import Week
from pages import shell
from pages.components import labels_line
from pages.components.text import plain

_DONE, _NOW, _TODO = ":primary[:material/check:]", ":material/arrow_forward:", ""


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
    todo = next_of(state)
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Next** &ensp; {todo.sentence}", width="content")
        theirs = not shell.may_open(todo.page)
        about = "Your role does not open that page: it is somebody else's turn." if theirs else None
        arrow = ":material/arrow_forward:"
        if st.button(todo.button, type="primary", icon=arrow, icon_position="right", disabled=theirs, help=about):
            st.switch_page(shell.page(todo.page), query_params=todo.address)
    if then := [_THEN[step] for step in state.steps[1:] if step in _THEN]:
        st.caption(f"Then: {listed(then, most=len(then))}.")


_THEN: dict[Step, str] = {
    "settle": "settle the disputed labels",
    "sample": "draw the next sample",
    "label": "label what is left",
    "detect": "run the detectors",
    "tune": "choose thresholds",
    "release": "release what is saved",
    "check": "recheck what is live",
}


def show_cards(state: Week, now: datetime) -> None:
    st.html("<style>.st-key-week_steps [data-testid='stPageLink-NavLink'] {padding: 0; background: none}</style>")
    with st.container(key="week_steps"):
        _show_cards(state, now)


def _show_cards(state: Week, now: datetime) -> None:
    for column, (number, card) in zip(st.columns(6, gap="small"), enumerate(cards(state, now), 1), strict=True):
        mark = _DONE if card.done else _NOW if card.step == state.next else _TODO
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            st.page_link(
                shell.page(card.step),
                label=f"{number} &ensp;**{card.title}** {mark}",
                icon=None,
                disabled=not shell.may_open(card.step),
            )
            st.markdown(card.headline)
            if card.progress is not None:
                st.progress(card.progress)
            if card.detail:
                st.caption(card.detail)


def next_of(state: Week) -> Next:
    if state.next == "fix":
        return _fix(state)
    if state.next == "settle":
        disputed = count(state.disputes, "label is disputed", "labels are disputed")
        sentence = f"{disputed}: they are in no figure until they are settled."
        # Of every sample and of none: the count is of the whole store.
        where = {"view": "disputed", "sample": labels_line.EVERYTHING}
        return Next(sentence, "Settle disputes", "agreement", where)
    if state.next == "check":
        names = listed(state.checks_due)
        sentence = f"{plain(names, 120)}: a recheck is under way, or nobody has looked at the precision for four weeks."
        return Next(sentence, "Recheck", "recheck")
    if state.next == "done" and state.release is not None:
        return Next(f"Nothing to do until Monday: v{state.release.version} is out.", "Look at the traces", "traces")
    version = 1 if state.release is None else state.release.version + 1
    # A sample that others have labelled is done, wherever this labeller stands in it.
    finished = state.place is None or state.place.position is None or state.left <= 0
    if state.next == "label" and state.aside and (finished or state.sample is None):
        return Next(f"The sample {plain(state.aside.name)} is not all labelled yet.", "Label it", "label")
    if state.next == "label" and state.sample and state.place:
        left = state.left
        pace = state.place.seconds_each
        time = f", about {duration(left * pace)} at your pace" if pace else ""
        begun = "Continue labelling" if state.labelled else "Start labelling"
        return Next(f"{count(left, 'trace')} of {plain(state.sample.name)} left to label{time}.", begun, "label")
    if state.next == "detect":
        if state.run and state.run.status in ("queued", "running"):
            return Next(f"Run {state.run.id} is scoring the sample.", "Watch the run", "detect")
        return Next("The labels are in. Run the detectors over the same traces.", "Run detectors", "detect")
    if state.next == "tune":
        scored = count(len(state.scored_detectors), "detector")
        return Next(f"{scored} scored the traces. Choose where each should flag.", "Tune thresholds", "tune")
    if state.next == "release":
        chosen = count(len(state.saved_points), "threshold is", "thresholds are")
        return Next(f"{chosen} chosen. Release them for your runtimes to read.", f"Release v{version}", "release")
    if state.release is not None:
        return Next(
            f"v{state.release.version} is out. Draw this week's traces to label.", "Draw the next sample", "sample"
        )
    return Next("Draw the traces to label this week.", "Draw a sample", "sample")


def _fix(state: Week) -> Next:
    """The first live threshold that is known to be bad. What a recheck has shown is chosen again on newer labels."""
    worst, *others = state.known_bad
    more = f" And {count(len(others), 'more')}." if others else ""
    why = plain(point_state.sentence(worst.state), 300)
    reason = f" *Released because:* {plain(worst.reason, 200)}." if worst.reason else ""
    sentence = f"**{plain(worst.name, 60)} is live and is known to be bad.** {why}{reason}"
    if worst.state.why == StateReason.RECHECK_FELL:
        return Next(f"{sentence}{more}", "Recalibrate", "recalibrate")
    return Next(f"{sentence}{more}", "Choose another threshold", "tune", {"detector": worst.name})


def cards(state: Week, now: datetime) -> list[Card]:
    return [_import(state), _sample(state), _label(state), _detect(state), _tune(state), _release(state, now)]


def _import(state: Week) -> Card:
    fresh = f"{count(state.new_this_week)} since Monday" if state.new_this_week else "none since Monday"
    return Card("import", "Import", state.traces > 0, count(state.traces, "trace"), fresh)


def _sample(state: Week) -> Card:
    if state.sample is None:
        return Card("sample", "Sample", False, "Nothing drawn yet")
    drawn = f"{count(state.sample.size)} of {count(state.sample.pool)}"
    return Card("sample", "Sample", True, drawn, plain(state.sample.name, 40))


def _label(state: Week) -> Card:
    labels = state.at_hand.counts
    if state.sample is None:
        headline = count(state.labelled, "trace") if state.labelled else "No labels yet"
        return Card("label", "Label", False, headline, "labelled outside a sample" if state.labelled else "")
    size = state.sample.size
    nothing_left = state.place is not None and state.place.position is None
    done = state.labelled >= size or nothing_left
    progress = None if done or not labels.labelled else labels.labelled / size  # as the headline counts
    return Card("label", "Label", done, sentences.labelled(labels), _traffic(state), progress)


def _traffic(state: Week) -> str:
    """What the labels say of the traffic, for small print; what they leave open stands below the cards."""
    return sentences.prevalence(state.at_hand.prevalence.share) or ""


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
        return Card("tune", "Tune", False, "None since the sample", f"v{state.release.version} is live")
    if not chosen:
        return Card("tune", "Tune", False, "No threshold yet")
    return Card("tune", "Tune", True, count(chosen, "threshold"), plain(", ".join(state.saved_points), 60))


def _release(state: Week, now: datetime) -> Card:
    release = state.release
    if release is None:
        return Card("release", "Release", False, "Nothing released yet")
    current = state.sample is None or release.released_at >= state.sample.created_at
    return Card("release", "Release", current, f"v{release.version}", ago(release.released_at, now))

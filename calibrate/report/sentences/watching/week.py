"""What is to do in the week, in the words that the home page, `weekly` and its report share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrate.report.names import title_of
from calibrate.report.numbers import count, duration, listed, share
from calibrate.report.sentences.tuning import point_state
from calibrate.report.sentences.watching import live
from calibrate.sanitize import one_line
from calibrate.types import StateReason
from calibrate.workflow.watching.live import Because
from calibrate.workflow.week.next_steps import Step
from calibrate.workflow.week.week import Week


@dataclass(frozen=True, slots=True)
class Todo:
    """One thing to do. `about` names what it is about, before the `sentence`; `button` is the page's word for it, `how`
    where or by which command it is done otherwise."""

    sentence: str
    button: str
    how: str = ""
    about: str = ""


def todo(state: Week, step: Step) -> Todo:
    """Say one step that is open."""
    return _TODO[step](state)


def line(state: Week, step: Step) -> str:
    """The same in one line, for a terminal."""
    task = todo(state, step)
    where = f" ({task.how})" if task.how else ""
    return f"{task.about + ': ' if task.about else ''}{task.sentence}{where}"


def then(state: Week) -> str:
    """Say what is open besides the next step; nothing where nothing is: "settle the disputed labels, then …"."""
    return listed([_THEN[step] for step in state.steps[1:] if step in _THEN], most=len(_THEN))


def elsewhere(state: Week) -> str:
    """Say that the next step is somebody else's, without its figures: "Somebody else's turn: run the detectors"."""
    others = {"import": "import traces", "fix": "replace a live threshold", "done": "nothing until Monday"}
    return f"Somebody else's turn: {_THEN.get(state.next) or others[state.next]}."


def own_turn(sample: str) -> str:
    """Say what a labeller does next, whatever is others' turn: "Label what is left of 2026-W47.", without a figure."""
    return f"Label what is left of {one_line(sample, 60)}."


_THEN: dict[Step, str] = {
    "settle": "settle the disputed labels",
    "sample": "draw the next sample",
    "label": "label what is left",
    "detect": "run the detectors",
    "tune": "choose thresholds",
    "release": "release what is saved",
    "check": "look at what is live",
}


def _import(state: Week) -> Todo:
    return Todo("No trace has come in yet: import what your app has logged.", "Import traces", "`import FILE`")


def _fix(state: Week) -> Todo:
    """The first live threshold that is known to be bad. What a recheck has shown is chosen again on newer labels."""
    worst, *others = state.known_bad
    more = f" And {count(len(others), 'more')}." if others else ""
    reason = f" Released because: {worst.reason}." if worst.reason else ""
    sentence = f"It is live and known to be bad. {point_state.sentence(worst.state)}{reason}{more}"
    if worst.state.why == StateReason.RECHECK_FELL:
        return Todo(sentence, "Recalibrate", "`recalibrate`", title_of(worst.name))
    return Todo(sentence, "Choose another threshold", f"`choose {worst.name}`", title_of(worst.name))


def _settle(state: Week) -> Todo:
    disputed = count(state.disputes, "label is disputed", "labels are disputed")
    sentence = f"{disputed}: {'it is' if state.disputes == 1 else 'they are'} in no figure until settled."
    return Todo(sentence, "Settle disputes", "the Disputes page, or `agreement adjudicate`")


def _sample(state: Week) -> Todo:
    if state.sample is not None and not state.fresh:
        return Todo("No trace came in the last 14 days: import what your app has logged.", "Import traces", "`import`")
    if state.release is not None:
        sentence = f"v{state.release.version} is out. Draw this week's traces to label."
        return Todo(sentence, "Draw the next sample", "`sample NAME`")
    return Todo("Draw the traces to label this week.", "Draw a sample", "`sample NAME`")


def _label(state: Week) -> Todo:
    if state.sample is None or is_aside(state):
        assert state.aside is not None
        return Todo(
            f"The sample {one_line(state.aside.name, 60)} is not all labelled yet.", "Label it", "the Label page"
        )
    waiting, left, name = state.at_hand.counts.waiting, state.left, one_line(state.sample.name, 60)
    seconds = state.place.seconds_each if state.place else None
    pace = f", about {duration(left * seconds)} at your pace" if seconds else ""
    if state.gap and waiting:
        hold = "label waits" if waiting == 1 else "labels wait"
        sentence = (
            f"{count(waiting)} {hold} behind a trace that nobody has labelled, in no figure until then; "
            f"{count(left, 'trace')} of {name} left{pace}."
        )
        return Todo(sentence, "Label the gap", "the Label page")
    button = "Continue labelling" if state.labelled else "Start labelling"
    return Todo(f"{count(left, 'trace')} of {name} left to label{pace}.", button, "the Label page")


def is_aside(state: Week) -> bool:
    """Whether what is left to label is of the sample that was drawn aside. A sample that others have labelled is done,
    wherever this labeller stands in it."""
    finished = state.left <= 0 or (state.place is not None and state.place.position is None and not state.gap)
    return state.aside is not None and (finished or state.sample is None)


def _detect(state: Week) -> Todo:
    if state.run and state.run.status in ("queued", "running"):
        return Todo(f"Run {state.run.id} is scoring the sample.", "Watch the run")
    return Todo("The labels are in. Run the detectors over the same traces.", "Run detectors", "`detect all`")


def _tune(state: Week) -> Todo:
    scored = count(len(state.scored_detectors), "detector")
    return Todo(f"{scored} scored the traces. Choose where each should flag.", "Tune thresholds", "`choose`")


def _release(state: Week) -> Todo:
    if state.proposals:
        waits = count(state.proposals, "release waits", "releases wait")
        return Todo(f"{waits} for a second person.", "Look at it", "`release approve`")
    version = 1 if state.release is None else state.release.version + 1
    chosen = count(len(state.saved_points), "threshold is", "thresholds are")
    return Todo(f"{chosen} chosen. Release them for your runtimes to read.", f"Release v{version}", "`release`")


def _check(state: Week) -> Todo:
    if state.checks_due:
        first, *others = state.checks_due
        more = f" And {count(len(others), 'more')}." if others else ""
        how = live.recheck(first) if first.because != Because.CHANGED else "`recalibrate`"
        return Todo(f"{live.why(first)}{more}", live.ACTIONS[first.due] if first.due else "", how, title_of(first.name))
    names = listed([one_line(model.name, 40) for model in state.unknown_models])
    sum_of = share(sum(model.share for model in state.unknown_models))
    answer = "answers" if len(state.unknown_models) == 1 else "answer"
    version = state.release.version if state.release else 0
    return Todo(
        f"{names} {answer} {sum_of} of the {count(state.unknown_models[0].total, 'trace')} at hand, and v{version} was "
        "made without: its thresholds are not known to hold there.",
        "Look at new models",
        "`seen`",
    )


def _done(state: Week) -> Todo:
    version = f": v{state.release.version} is out" if state.release else ""
    return Todo(f"Nothing to do until Monday{version}.", "Look at the traces")


_TODO: dict[Step, Callable[[Week], Todo]] = {
    "import": _import,
    "fix": _fix,
    "settle": _settle,
    "sample": _sample,
    "label": _label,
    "detect": _detect,
    "tune": _tune,
    "release": _release,
    "check": _check,
    "done": _done,
}

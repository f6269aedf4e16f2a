"""Live thresholds in words: what each promises, what is known of it now, and what it needs."""

from __future__ import annotations

from datetime import date, datetime
from shlex import quote

from calibrate.report.numbers import ago, count, day, estimate, exact_share, labelled, listed, period, share
from calibrate.report.sentences.tuning import point_state
from calibrate.report.sentences.watching import drift as drifting
from calibrate.sanitize import one_line, visible
from calibrate.thresholds.segments import name_segment
from calibrate.workflow.watching.drift_report import DriftState
from calibrate.workflow.watching.live import Because, Due, Estimate, LiveThreshold
from calibrate.workflow.watching.new_models import WISH, NewModel

NAMED = 3  # models

ACTIONS = {
    Due.CHOOSE: "Choose another",
    Due.RECALIBRATE: "Recalibrate",
    Due.RECHECK: "Recheck",
    Due.GATE: "Draw a sample",
    Due.SCORE: "Score the traffic",
}


def promised(row: LiveThreshold) -> str:
    """ "at least 70%, certified", "at least 60%", "nothing"."""
    if row.promised is None:
        return "nothing"
    proven = "" if row.strength == "measured" else f", {row.strength}"
    return f"at least {exact_share(row.promised)}{proven}"


def precision(row: LiveThreshold) -> str:
    """ "74% (61–84%)"; an unknown is said to be unknown."""
    precision = row.estimate.precision
    return estimate(precision.value, precision.low, precision.high)


def precision_from(of: Estimate) -> str:
    """Say what that stands on: "37 of 50 flagged labels, recheck of 9 to 15 Nov 2026"."""
    counted = labelled(of.labels, of.positives) if of.flagged is None else (
        f"{count(of.hits or 0)} of {count(of.flagged, 'flagged label')}"
    )  # fmt: skip
    where = _days(of)
    if of.recheck:
        return f"{counted}, recheck of {where}{', still open' if of.open else ''}"
    return f"{counted}, {'up to ' if of.since is None else ''}{where}"


def _days(of: Estimate) -> str:
    if of.until is None:
        return "all days" if of.since is None else f"{day(of.since)} and later"
    return day(of.until) if of.since is None else period(of.since, of.until)


def state(row: LiveThreshold) -> str:
    """ "Holds", "Not shown yet", "Do not release this"; nothing where that is not known. What holds was shown without
    the models that came since."""
    if row.judged is None:
        return ""
    headline = point_state.headline(row.judged.state)
    without = unshown_models(row)
    return f"{headline}; not known for {listed(without, NAMED)}" if without else headline


def unshown_models(row: LiveThreshold) -> list[str]:
    """Name the models that came since its release, for which nothing is shown; none where it is known to be bad."""
    if row.judged is None or row.judged.state.known_bad:
        return []
    return [one_line(model.name, 40) for model in row.models if model.unseen]


def against(row: LiveThreshold) -> str:
    """Say why it is known to be bad, and for what reason it is out all the same; nothing where it is not."""
    if row.judged is None or not row.judged.state.known_bad:
        return ""
    reason = f" Released because: {row.judged.reason}." if row.judged.reason else ""
    return f"{point_state.sentence(row.judged.state)}{reason}"


def drift(row: LiveThreshold) -> str:
    """ "no change seen", "moved"; that nothing is compared is said."""
    if row.drift is None:
        return "of its parts" if row.ensemble else "nothing to compare yet"
    return drifting.STATES[row.drift]


def drift_from(row: LiveThreshold) -> str:
    """How many traces that was found on: "1,204 traces compared"."""
    if row.drift in (DriftState.NOT_SCORED, DriftState.PARTLY_SCORED):
        scored, traces = sum(line.scored for line in row.lines), sum(line.traces for line in row.lines)
        return f"{count(scored)} of {count(traces, 'trace')} scored"
    compared = sum(line.compared for line in row.lines)
    return f"{count(compared, 'trace')} compared" if compared else ""


def models(row: LiveThreshold) -> str:
    """ "gpt-a 83%, gpt-b 17% (new)"; of what share of the traffic since the release."""
    total = sum(model.traces for model in row.models)
    if not total:
        return "–"
    named = [
        f"{'not given' if model.name == '(none)' else one_line(model.name, 40)} {share(model.traces / total)}"
        f"{' (new)' if model.unseen else ''}"
        for model in row.models
    ]
    return listed(named, NAMED)


def models_from(row: LiveThreshold) -> str:
    """Say of how much traffic that is: "of 1,204 traces"."""
    total = sum(model.traces for model in row.models)
    return f"of {count(total, 'trace')}" if total else ""


def checked(row: LiveThreshold, now: datetime) -> str:
    """ "12 days ago, by a recheck"."""
    return f"{ago(row.checked_at, now)}, {'by a recheck' if row.rechecked else 'at its release'}"


def flags(row: LiveThreshold) -> str:
    """Say how much it flags, from its first flag on: "about 7 a day, over 30 days", "3 in 5 days"."""
    if not row.flags:
        return "no decision here"
    first, last = (date.fromisoformat(day) for day in (min(row.flags), max(row.flags)))
    days, flagged = (last - first).days + 1, sum(row.flags.values())
    if not flagged:
        return "none"
    if days == 1:
        return f"{count(flagged)} on one day"
    return (
        f"about {count(round(flagged / days))} a day, over {days} days"
        if flagged >= days
        else f"{count(flagged)} in {days} days"
    )


def why(row: LiveThreshold) -> str:
    """Say why something is due; nothing where nothing is."""
    if row.because is None:
        return ""
    if row.because in (Because.BAD, Because.FELL):
        return against(row)
    if row.because == Because.CHANGED:
        return f"It is no longer what was released: {', '.join(row.changes)}."
    return f"{_WHY[row.because]}{_part(row)}"


def _part(row: LiveThreshold) -> str:
    """Say which segment is to be rechecked; nothing where a detector has one threshold for all."""
    if row.due == Due.GATE:
        return " No segment of it has flagged traces to recheck: label a sample of new traffic, then test it by `gate`."
    if row.due != Due.RECHECK or row.by is None or row.segment is None:
        return ""
    return f" It has thresholds per segment; {one_line(name_segment(row.by, row.segment), 80)} is next: {recheck(row)}."


def recheck(row: LiveThreshold) -> str:
    """Name the command that looks at its precision."""
    if row.due == Due.GATE:
        return "`gate`"
    segment = "" if row.segment is None else f" --segment {quote(visible(row.segment, 100))}"
    return f"`recheck {row.name}{segment}`"


_WHY = {
    Because.UNDER_WAY: "A recheck is under way.",
    Because.MOVED: "Its scores moved since the release: whether its precision still holds is not known.",
    Because.OVERDUE: "Nobody has looked at its precision for four weeks.",
    Because.UNSCORED: "The traffic since the release lacks its scores: nothing can be compared.",
}


def new_model(model: NewModel, version: int) -> str:
    """Say what a model that the release does not know asks for, with how many labels it needs."""
    seen = model.seen
    labels = (
        f"about {count(model.labels, 'label')} of its answers tell a precision to ±{share(WISH).rstrip('%')} points"
        if model.labels is not None and model.labels < seen.traces
        else "it has answered too little to tell a precision there: label all of its answers"
    )
    return (
        f"{one_line(seen.name, 60)} answers {share(seen.share)} of the {count(seen.total, 'trace')} since "
        f"{day(seen.since)}. v{version} was made without it: {labels}."
    )

"""What the gate of a pipeline found, in sentences and as a summary in Markdown."""

from __future__ import annotations

from calibrate.report import markdown
from calibrate.report.names import title_of
from calibrate.report.numbers import (
    about,
    count,
    estimate,
    exact_share,
    interval,
    labelled,
    limit,
    listed,
    points,
    share,
)
from calibrate.sanitize import one_line
from calibrate.thresholds.model import DetectorEntry
from calibrate.workflow.watching.gate import Compared, Gate, Judged

HEAD = ("threshold", "figure", "promised", "now", "change", "may drop by", "")
MARKS = {"holds": "holds", "fell": "FELL", "too few labels": "too few labels"}


def verdict(gate: Gate) -> str:
    """Say whether the release holds, and what would tell where the labels do not."""
    release, where = f"Release {gate.file.version}", f"on {one_line(gate.sample.name, 100)}"
    labels = labelled(gate.labels, gate.positives)
    if gate.decision == "holds":
        return f"{release} holds {where}: no figure dropped by more than it may ({labels})."
    if gate.decision == "fell":
        fallen = "; ".join(_fallen(row, each) for row in gate.judged for each in row.figures if each.decision == "fell")
        return f"{release} fell {where}: {fallen} ({labels})."
    return f"Too few labels to tell whether release {gate.file.version} holds {where} ({labels}): {_more(gate)}."


def _fallen(row: Judged, each: Compared) -> str:
    change = each.change
    least = points(-change.highest, None, None).removeprefix("+")
    than = f"{share(each.promise.stated.value)} to {share(each.now.value)}"
    return f"{each.promise.figure} of {title_of(row.tested.name)} went from {than}, at least {least} lower"


def _more(gate: Gate) -> str:
    """Say how many more labels would tell, or why none would."""
    if gate.forecast is not None and gate.forecast.more is not None:
        left = f" ({count(gate.left)} of the sample have none yet)" if gate.left else ""
        return f"about {about(gate.forecast.more)} more would{left}"
    if gate.forecast is not None and gate.forecast.promise:
        worst = max(
            (each for row in gate.judged for each in row.figures),
            key=lambda each: each.change.then.high - each.change.then.low,
        )
        promised = worst.promise
        return (
            f"no number would, as the release itself knows its {promised.figure} only as "
            f"{interval(promised.stated.low, promised.stated.high)}: allow a larger drop, release on more labels, or "
            f"take the figures as they are stated (`--as-stated`){_partly(gate)}"
        )
    return f"a figure is so near what it may drop to that 20,000 more labels may not tell{_partly(gate)}"


def _partly(gate: Gate) -> str:
    """Say how many more labels would tell some of the figures, where no number tells all."""
    if gate.partly is None:
        return ""
    names = [f"{each.promise.figure} of {title_of(row.tested.name)}" for row, each in gate.partly.figures]
    return f". About {about(gate.partly.more)} more would tell {listed(names)}"


def cautions(gate: Gate) -> list[str]:
    """Say what to know beside the verdict."""
    notes = [
        f"{title_of(row.tested.name)} is tested as it is now (version {row.tested.version}"
        f"{f', {one_line(row.tested.revision, 60)}' if row.tested.revision else ''}), not as it was released: a "
        "runtime takes no score of it until it is released anew"
        for row in gate.judged
        if not row.tested.same
    ]
    if gate.seen:
        names = listed([one_line(name, 60) for name in gate.seen])
        notes.append(
            f"the release was chosen on labels of {names}, so they say nothing of a change: label a sample of the "
            "changed system"
        )
    if gate.unlike:
        names = listed([one_line(name, 60) for name in gate.unlike])
        notes.append(
            f"{names}: scores are not like the other traffic's of those days, as they are where a system changed. If "
            "its traces were not chosen at random, say so (`sample NAME --state flagged|feedback|unknown`)"
        )
    return notes


def rows(gate: Gate) -> list[tuple[str, ...]]:
    """Tell every figure beside its promise; the first row is the head."""
    return [HEAD, *(_row(row, each) for row in gate.judged for each in row.figures)]


def _row(row: Judged, each: Compared) -> tuple[str, ...]:
    promise, change = each.promise, each.change
    stated = promise.stated
    if promise.origin == "target":
        promised = f"at least {exact_share(stated.value or 0.0)}"
    else:
        promised = estimate(stated.value, stated.low, stated.high)
    bounds = (change.low, change.high) if change.value is not None else (None, None)
    return (
        _name(row),
        promise.figure,
        promised,
        estimate(each.now.value, each.now.low, each.now.high),
        points(change.value, *bounds),
        f"{100 * promise.margin:g} points",
        MARKS[each.decision],
    )


def _name(row: Judged) -> str:
    entry = row.tested.entry
    where = ""
    if isinstance(entry, DetectorEntry):
        where = f" {limit(entry.threshold, entry.flag_when)}{' or of its segment' if entry.segments else ''}"
    return f"{title_of(row.tested.name)}{where} ({row.tested.tier})"


def summary(gate: Gate) -> str:
    """Write the Markdown summary: the verdict, every figure, and what to know. No text of a trace is in it."""
    notes = "".join(f"- {markdown.escape(note, 400)}\n" for note in cautions(gate))
    planned = (
        f"\nA sample that shows with a chance of 80% that nothing changed takes about {about(gate.planned)} labels, "
        "drawn like those of the release.\n"
        if gate.planned is not None
        else ""
    )
    return (
        f"## Touchstone gate: {markdown.escape(gate.decision)}\n\n{markdown.escape(verdict(gate), 2000)}\n\n"
        f"{markdown.table(rows(gate))}\n\nIntervals of figures are 95%; bounds of changes are one-sided, 97% each.\n"
        f"{planned}{notes and chr(10)}{notes}"
    )


def broken(problem: str) -> str:
    """Write the summary of a gate that could not answer."""
    return f"## Touchstone gate: broken\n\n{markdown.escape(problem, 2000)}\n"

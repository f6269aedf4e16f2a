"""What stands between a saved threshold and its release, item by item, in words."""

from __future__ import annotations

from datetime import datetime

from calibrate.report.numbers import ago, count, day, listed, share
from calibrate.report.sentences.tuning import point_state
from calibrate.report.sentences.tuning.certification import certified_segments
from calibrate.report.sentences.tuning.figures import capitalised
from calibrate.sanitize import one_line
from calibrate.workflow.releasing.checklist import ENOUGH, FRESH, Checklist, Facts, Item, Mark

NAMES = {
    Item.EVIDENCE: "Evidence",
    Item.DISPUTES: "Disputes",
    Item.COVERAGE: "Coverage",
    Item.FRESH: "Fresh enough",
    Item.PROMISE: "Promise",
}
MARKS = {Mark.PASSED: "✓", Mark.CAUTION: "!", Mark.FAILED: "✗"}
WORDS = {Mark.PASSED: "passed", Mark.CAUTION: "look at it", Mark.FAILED: "takes a reason"}
COMMANDS = {
    Item.EVIDENCE: "sample {sample} --more 50",
    Item.DISPUTES: "agreement",
    Item.COVERAGE: "detect {detector} --list",
    Item.FRESH: "recalibrate --dry-run",
    Item.PROMISE: "certify {detector}",
}


def words(checklist: Checklist, item: Item, now: datetime) -> str:
    """Say what one item was decided from."""
    return f"{capitalised(_words(checklist, item, now)).rstrip('.')}."


def _words(checklist: Checklist, item: Item, now: datetime) -> str:
    facts = checklist.facts
    if item == Item.EVIDENCE:
        return _evidence(facts)
    if item == Item.DISPUTES:
        disputed = count(facts.disputed, "label is", "labels are")
        return f"{disputed} disputed and in no figure" if facts.disputed else "no label is disputed"
    if item == Item.COVERAGE:
        return f"it scores {share(facts.coverage)} of {count(facts.labels, 'labelled trace')}"
    return _fresh(facts, now) if item == Item.FRESH else _promise(checklist)


def line(checklist: Checklist, item: Item, now: datetime) -> str:
    """Write one item as the command line prints it: "✓ Evidence: 60 of 84 flagged labels were hallucinated"."""
    mark = checklist.marks[item]
    text = f"{MARKS[mark]} {NAMES[item]}: {words(checklist, item, now).rstrip('.')}"
    if mark == Mark.PASSED:
        return text
    command = COMMANDS[item].format(detector=checklist.detector, sample=checklist.sample or "NAME")
    return f"{text} ({WORDS[mark]}: `{command}`)"


def headline(checklist: Checklist) -> str:
    """Say how a threshold stands in one phrase."""
    if checklist.facts.is_open:
        return "cannot be released"
    if checklist.blocks:
        return "takes a reason"
    n = sum(mark != Mark.PASSED for mark in checklist.marks.values())
    return f"{count(n, 'item')} to look at" if n else "ready"


def _evidence(facts: Facts) -> str:
    flagged = f"{count(facts.hits)} of {count(facts.flagged, 'flagged label')} hallucinated"
    of_all = f"{flagged}, {count(facts.labels, 'label')} in all"
    return of_all if facts.flagged >= ENOUGH else f"{of_all}; a precision takes {count(ENOUGH)} flagged ones"


def _fresh(facts: Facts, now: datetime) -> str:
    parts = []
    if facts.changed:
        parts.append("the detector's model, prompt or list has changed since")
    if facts.models:
        parts.append(f"no label yet of {listed([one_line(name, 60) for name in facts.models])}, answering since then")
    if facts.newest is None:
        parts.append("nobody knows when its labels end")
    else:
        old = f", over {count(FRESH.days)} days" if now - facts.newest > FRESH else ""
        parts.append(f"labels reach to {day(facts.newest)}, {ago(facts.newest, now)}{old}")
    return "; ".join(parts)


def _promise(checklist: Checklist) -> str:
    text = " ".join(
        [
            point_state.sentence(checklist.facts.state),
            *(f"{line}." for line in certified_segments(checklist.segments, checklist.flag_when)),
        ]
    )
    return f"{text} Saved because: {one_line(checklist.reason, 300)}" if checklist.reason else text

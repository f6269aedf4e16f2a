"""What a release changes against the live one, a line for each detector and one for the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrate.report.numbers import count, number, share
from calibrate.report.sentences.releasing import impact
from calibrate.report.sentences.tuning.figures import saved_policy_in_words
from calibrate.sanitize import one_line
from calibrate.thresholds.changes import Change, describe_guarantee
from calibrate.types import Guarantee, Interval
from calibrate.workflow.releasing.impact import DetectorImpact

_LABELS = {
    "data.sample": "sample", "data.design": "design", "data.samples": "samples", "data.n": "number",
    "data.positives": "hallucinated", "data.models": "models", "data.label_set_digest": "digest",
    "baselines": "baselines",
}  # fmt: skip
_FIGURES = {
    "precision": "precision", "recall": "recall", "fpr": "false-positive rate", "flag_rate": "flag rate",
    "coverage": "coverage",
}  # fmt: skip


@dataclass(frozen=True)
class ChangeLine:
    """What changes of `name`, a detector or an ensemble; None stands for the labels. `verb`: "comes in" or "leaves", ""
    where it stays. `figures`: its measured figures before and after, "" where none changes."""

    name: str | None
    verb: str
    what: str
    figures: str = ""


def lines_of(changes: Sequence[Change], rows: Mapping[str, DetectorImpact] | None = None) -> list[ChangeLine]:
    """Describe changes, the labels last. The figures of `rows` come from the same labels on both sides."""
    about: dict[str | None, list[Change]] = {}
    for change in changes:
        about.setdefault(change.detector, []).append(change)
    data = about.pop(None, [])
    lines = [_describe(str(name), group, (rows or {}).get(str(name))) for name, group in about.items()]
    if data:
        moves = (_moved(_LABELS.get(change.field, change.field), *_values(change)) for change in data)
        lines.append(ChangeLine(None, "", ", ".join(moves)))
    return lines


def _describe(name: str, changes: Sequence[Change], row: DetectorImpact | None) -> ChangeLine:
    first = changes[0]
    if first.field == "detector":
        new = first.before is None
        return ChangeLine(name, "comes in" if new else "leaves", str(first.after if new else first.before))
    rules = [_moved(c.field.replace("params.", ""), *_values(c)) for c in changes if _figure_of(c) not in _FIGURES]
    paired = row.check.paired if row and row.check else None
    if row and paired:
        words = ("precision", "recall", "flags a day")
        sides = zip(words, impact.side(row, new=False)[1:], impact.side(row, new=True)[1:], strict=True)
        measured = [_moved(*figure) for figure in sides]
        measured.append(f"both on the same {count(paired.n)} labels")
    else:
        measured = [
            _moved(c.field.replace(figure, _FIGURES[figure], 1), *_values(c))
            for c in changes
            if (figure := _figure_of(c)) in _FIGURES
        ]
    return ChangeLine(name, "", ", ".join(rules) or "same threshold, measured anew", ", ".join(measured))


def _figure_of(change: Change) -> str:
    """What changed, of whichever segment: "precision" for "precision (operation qa)"."""
    return change.field.partition(" (")[0]


def _moved(name: str, before: str, after: str) -> str:
    return f"{one_line(name.replace('_', ' '), 100)} {before} → {after}"


def _values(change: Change) -> tuple[str, str]:
    """Both values as text."""
    before, after = (_value(value, change.field) for value in (change.before, change.after))
    return before, after


def _value(value: Any, field: str) -> str:
    if isinstance(value, Interval):
        return share(value.value)
    if isinstance(value, Guarantee):
        return describe_guarantee(value)
    if field == "policy":
        return saved_policy_in_words(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else one_line(str(value), 80)

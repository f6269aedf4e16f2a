"""What others said of answers: scores of programs become scores here, verdicts of people become labels.

Nothing is guessed. A person's annotation is a verdict where its name asks for one and its value is a verdict's word,
where it is a yes or no to `hallucination`, or where a rule of the team names it. All else is left out and counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.labels.base import Parsed, Read, rejection
from calibrate.ingest.labels.fields import build_label
from calibrate.ingest.labels.questions import VERDICT_NAMES
from calibrate.ingest.spans.answers import Answer
from calibrate.ingest.spans.record import SpanRecord
from calibrate.ingest.stated_scores import MAX_NAME, OURS, fit_name
from calibrate.ingest.values import FieldError
from calibrate.sanitize import one_line
from calibrate.types import VERDICTS, Label, StatedScore

_WORDS: dict[str, str] = {**{str(verdict): str(verdict) for verdict in VERDICTS}, "factual": "clean"}
_YES_OR_NO = frozenset(("hallucination", "hallucinated"))

Targets = Mapping[str | None, str]
"""Id of a span → id of the answer that a remark on the span is about; None: a remark on the whole trace."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One score, annotation or feedback, whatever the system calls it.

    Attributes
    ----------
    name : str
    value : object
        A number, a boolean, or a word.
    by_person : bool
    target : str or None
        The span's id; None for the whole trace.
    author : str
        Of a person's remark.
    comment : str or None
    made_at : object
    place : str
        How an error names it.
    """

    name: str
    value: Any
    by_person: bool
    target: str | None = None
    author: str = ""
    comment: str | None = None
    made_at: Any = None
    place: str = ""


@dataclass(slots=True)
class Remarks:
    """Remarks that were read: scores by the detector's name, labels, and what was left out, with its number."""

    scores: dict[str, list[StatedScore]] = field(default_factory=dict)
    labels: list[Read] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, others: Remarks) -> None:
        """Take in the remarks on another trace."""
        for name, scores in others.scores.items():
            self.scores.setdefault(name, []).extend(scores)
        self.labels += others.labels
        self.left_out += others.left_out


class Verdicts:
    """Which values of a person's annotation mean which verdict.

    Parameters
    ----------
    rules : iterable of str
        `NAME:VALUE=VERDICT`, like `quality:wrong=hallucinated`.

    Raises
    ------
    BadInput
        For a rule of another form.
    """

    def __init__(self, rules: Iterable[str] = ()) -> None:
        self._rules: dict[tuple[str, str], str] = {}
        for rule in rules:
            stated, equals, verdict = rule.rpartition("=")
            name, colon, value = stated.partition(":")
            if not (equals and colon and name.strip() and value.strip()) or verdict.strip().lower() not in VERDICTS:
                raise BadInput(
                    f"{rule[:80]!r} is no rule for verdicts; write NAME:VALUE=VERDICT, like "
                    f"quality:wrong=hallucinated; verdicts are {', '.join(VERDICTS)}"
                )
            self._rules[_plain(name), _plain(value)] = verdict.strip().lower()

    def read(self, name: str, value: Any) -> str | None:
        """The verdict that an annotation means; None for one that means none."""
        plain, word = _plain(name), _plain(value)
        if (ruled := self._rules.get((plain, word))) is not None:
            return ruled
        if plain in _YES_OR_NO and isinstance(value, bool):
            return "hallucinated" if value else "clean"
        return _WORDS.get(word) if plain in VERDICT_NAMES | _YES_OR_NO else None


def targets_of(spans: Sequence[SpanRecord], answers: Sequence[Answer]) -> dict[str | None, str]:
    """Find the answer that a remark is about.

    Parameters
    ----------
    spans : sequence of SpanRecord
        All of one trace.
    answers : sequence of Answer
        In order of their beginning.

    Returns
    -------
    dict of str or None to str
        A span that holds an answer has it; one around answers has the last of them, and so has the whole trace.
    """
    parents = {span.span_id: span.parent_id for span in spans}
    targets: dict[str | None, str] = {}
    for answer in answers:
        above = parents.get(answer.span_id)
        seen = set[str]()
        while above is not None and above not in seen:
            seen.add(above)
            targets[above] = answer.trace.id
            above = parents.get(above)
        targets[None] = answer.trace.id
    return targets | {answer.span_id: answer.trace.id for answer in answers}


def sort_remarks(remarks: Iterable[Remark], targets: Targets, verdicts: Verdicts, system: str, line: int) -> Remarks:
    """Sort remarks on one trace into scores, labels and the rest.

    Parameters
    ----------
    remarks : iterable of Remark
    targets : mapping
        As `targets_of` gives them.
    verdicts : Verdicts
    system : str
        The detectors are called after it: `langfuse.correctness`.
    line : int
        Their place in the file, or 0.

    Returns
    -------
    Remarks
    """
    sorted_out = Remarks()
    for remark in remarks:
        answer = targets.get(remark.target)
        shown = one_line(remark.name)[:40]
        if remark.name.startswith(OURS):
            sorted_out.left_out["scores by Touchstone"] += 1
        elif answer is None:
            sorted_out.left_out["remarks on something without an answer"] += 1
        elif remark.by_person:
            verdict = verdicts.read(remark.name, remark.value)
            if verdict is None:
                sorted_out.left_out[f"annotations {shown!r} without a verdict"] += 1
            else:
                sorted_out.labels.append(_label(remark, answer, verdict, line))
        elif (number := _number(remark.value)) is None:
            sorted_out.left_out[f"scores {shown!r} without a number"] += 1
        else:
            name = detector_name(system, remark.name)
            sorted_out.scores.setdefault(name, []).append(StatedScore(answer, number, remark.comment))
    return sorted_out


def with_remarks(rows: Sequence[Row], remarks: Remarks) -> list[Row]:
    """Give each row the scores and labels of its answer. What is neither is named by the first row."""
    labels = [each.label for each in remarks.labels if isinstance(each, Parsed)]
    unread = {"labels that cannot be read": None} if len(labels) < len(remarks.labels) else {}
    names = tuple({**remarks.left_out, **unread})
    return [_with_remarks(row, remarks.scores, labels, () if number else names) for number, row in enumerate(rows)]


def _with_remarks(
    row: Row, scores: Mapping[str, Sequence[StatedScore]], labels: Sequence[Label], left_out: tuple[str, ...]
) -> Row:
    answer = row.fields["trace_id"]
    own = {
        name: {"value": score.value, "reason": score.reason} for name, listed in scores.items() for score in listed
        if score.trace_id == answer
    }  # fmt: skip
    fields = {**row.fields, "scores": own} if own else row.fields
    own_labels = tuple([label for label in labels if label.trace_id == answer])
    return replace(row, fields=fields, labels=own_labels, left_out=left_out)


def detector_name(system: str, name: str) -> str:
    """Name the external detector of a system's score, in letters that a thresholds file takes."""
    return f"{system}.{fit_name(name)}"[:MAX_NAME]


def _label(remark: Remark, answer: str, verdict: str, line: int) -> Parsed | Rejected:
    fields = {
        "trace_id": answer,
        "verdict": verdict,
        "labeller": remark.author,
        "note": remark.comment,
        "created_at": remark.made_at,
    }
    try:
        return Parsed(line, build_label(fields), ids=(answer,), where=remark.place)
    except FieldError as error:
        return rejection(line, remark.place, error)


def _number(value: Any) -> float | None:
    """A finite number, 1 or 0 for a yes or a no."""
    if not isinstance(value, (bool, int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()

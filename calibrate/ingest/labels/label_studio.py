"""Label Studio's JSON: tasks with `data` and `annotations`, each with the results of the controls of its page.

A verdict is a choice, kinds are choices, a note is a text, a span a region with labels. The offsets of regions count
code points. Skipped annotations and predictions are no labels.

References
----------
The format: https://labelstud.io/guide/task_format and https://labelstud.io/guide/export
The results: https://labelstud.io/tags/choices, https://labelstud.io/tags/labels, https://labelstud.io/tags/textarea
Who may have completed an annotation: https://labelstud.io/guide/tasks
Offsets: https://github.com/HumanSignal/label-studio-frontend/pull/308 (code points, since version 1.5; before, UTF-16)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from calibrate.ingest.base import Row
from calibrate.ingest.labels.base import (
    ANSWERS,
    NO_KIND,
    LabelFormat,
    LeftOut,
    Lost,
    Parsed,
    Read,
    Written,
    by_trace,
    in_batches,
    rejection,
)
from calibrate.ingest.labels.documents import objects
from calibrate.ingest.labels.fields import parse_kinds, parse_seconds, parse_time
from calibrate.ingest.labels.questions import KINDS_NAMES, VERDICT_NAMES, is_verdict
from calibrate.ingest.values import MAX_ID_LENGTH, MAX_NAME_LENGTH, FieldError, expected, name_or_none
from calibrate.ingest.verdicts import as_verdict
from calibrate.types import Label, Span, Trace, Verdict


@dataclass
class _Results:
    """What the results of one annotation come to."""

    verdict: Verdict | None = None
    kinds: list[Any] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    quotes: list[str | None] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def _recognises(fields: Mapping[str, object]) -> bool:
    return isinstance(fields.get("data"), dict) and ("annotations" in fields or "predictions" in fields)


def _read(rows: Iterable[Row]) -> Iterator[Read]:
    for number, row in enumerate(rows, start=1):
        where = f"task {number}"
        try:
            data = row.fields.get("data")
            if not isinstance(data, dict):
                raise expected("data", "an object", data)
            trace_id = name_or_none(data.get("trace_id", data.get("id")), "data.trace_id", MAX_ID_LENGTH)
            if trace_id is None:
                raise FieldError("data.trace_id: missing")
            annotations = row.fields.get("annotations") or []
            if not isinstance(annotations, list):
                raise expected("annotations", "a list", annotations)
        except FieldError as error:
            yield rejection(row.line, where, error)
            continue
        if not annotations:
            yield LeftOut("tasks without an annotation")
        if row.fields.get("predictions"):
            yield LeftOut("predictions")
        answer = next((data[name] for name in ANSWERS if isinstance(data.get(name), str)), None)
        for at, annotation in enumerate(annotations, start=1):
            yield from _read_annotation(row.line, f"{where}, annotation {at}", annotation, trace_id, answer)


def _read_annotation(line: int, where: str, annotation: Any, trace_id: str, answer: str | None) -> Iterator[Read]:
    try:
        if not isinstance(annotation, dict):
            raise expected("annotation", "an object", annotation)
        if annotation.get("was_cancelled"):
            yield LeftOut("skipped annotations")
            return
        results = _gather(annotation.get("result"))
        yield from map(LeftOut, results.left_out)
        if results.verdict is None:
            raise FieldError("no verdict: none of its choices is clean, hallucinated or unsure")
        label = Label(
            trace_id=trace_id,
            labeller=_labeller(results, annotation.get("completed_by")),
            verdict=results.verdict,
            kinds=parse_kinds(results.kinds),
            spans=tuple(results.spans),
            note=results.texts.get("note") or None,
            seconds=parse_seconds(annotation.get("lead_time"), "lead_time"),
            created_at=parse_time(annotation.get("created_at")),
            adjudicates=annotation.get("ground_truth") is True,
        )
        yield Parsed(line, label, answer=answer, quotes=tuple(results.quotes), where=where)
    except FieldError as error:
        yield rejection(line, where, error)


def _gather(result: Any) -> _Results:
    if not isinstance(result, list):
        raise expected("result", "a list", result)
    results = _Results()
    for at, region in enumerate(result):
        value = region.get("value") if isinstance(region, dict) else None
        if not isinstance(value, dict):
            raise expected(f"result[{at}]", "an object with a value", region)
        kind, name = region.get("type"), str(region.get("from_name", ""))
        if kind == "choices":
            _add_choices(results, name, value)
        elif kind == "labels":
            _add_region(results, f"result[{at}]", value)
        elif kind == "textarea" and name in ("note", "labeller"):
            results.texts[name] = _text(value.get("text"), name)
        else:
            results.left_out.append(f"results of {name[:40]!r}")
    return results


def _add_choices(results: _Results, name: str, value: dict[str, Any]) -> None:
    choices = value.get("choices")
    if not isinstance(choices, list):
        raise expected(name or "choices", "a list of choices", choices)
    if name.lower() in KINDS_NAMES and "start" not in value:
        results.kinds += choices
    elif "start" not in value and (name.lower() in VERDICT_NAMES or (len(choices) == 1 and is_verdict(choices[0]))):
        for choice in choices:
            verdict = as_verdict(choice, name)
            if results.verdict not in (None, verdict):
                raise FieldError(f"{name}: two verdicts, {results.verdict} and {verdict}; give one")
            results.verdict = verdict
    else:
        results.left_out.append(f"choices of {name[:40]!r}")


def _add_region(results: _Results, where: str, value: dict[str, Any]) -> None:
    start, end = value.get("start"), value.get("end")
    if type(start) is not int or type(end) is not int:
        raise expected(f"{where}.value", "whole numbers start and end", start if type(start) is not int else end)
    quote = value.get("text")
    for kind in parse_kinds(value.get("labels"), f"{where}.value.labels") or (NO_KIND,):
        results.spans.append(Span(start, end, None if kind == NO_KIND else kind))
        results.quotes.append(quote if isinstance(quote, str) else None)


def _text(value: Any, name: str) -> str:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise expected(name, "text", value)
    return "\n".join(texts)


def _labeller(results: _Results, completed_by: Any) -> str:
    """The labeller that an export named, else the e-mail address or the number of the user of Label Studio."""
    named = results.texts.get("labeller")
    if not named:
        user = completed_by
        if isinstance(user, dict):
            user = user.get("email") or user.get("id")
        named = f"label-studio-{user}" if type(user) is int else user
    return name_or_none(named, "labeller", MAX_NAME_LENGTH) or ""


def _write(labels: Iterable[Label], load: Callable[[Sequence[str]], Mapping[str, Trace]], file: TextIO) -> Written:
    lost: Counter[Lost] = Counter()
    count, comma = 0, "\n"
    file.write("[")
    for trace_id, group, trace in in_batches(by_trace(labels), load):
        is_readable = trace is not None and trace.purged_at is None
        answer = trace.answer if trace is not None else ""
        data = {"trace_id": trace_id, "question": (trace.question if trace else None) or "", "answer": answer}
        task = {"data": data, "annotations": [_annotation(label, answer) for label in group]}
        file.write(comma + json.dumps(task, ensure_ascii=False))
        comma = ",\n"
        count += len(group)
        lost["sample"] += sum(label.sample is not None for label in group)
        lost["purged"] += 0 if is_readable else len(group)
    file.write("\n]\n")
    return Written(count, +lost)


def _annotation(label: Label, answer: str) -> dict[str, Any]:
    about = {"to_name": "answer"}
    result: list[dict[str, Any]] = [
        {"from_name": "verdict", **about, "type": "choices", "value": {"choices": [label.verdict]}}
    ]
    if label.kinds:
        result.append({"from_name": "kinds", **about, "type": "choices", "value": {"choices": list(label.kinds)}})
    for at, span in enumerate(label.spans):
        value = {"start": span.start, "end": span.end, "text": answer[span.start : span.end]}
        value["labels"] = [span.kind or NO_KIND]
        result.append({"id": f"span-{at}", "from_name": "spans", **about, "type": "labels", "value": value})
    # The user who imports completes every annotation: Label Studio refuses a file that names users it does not have.
    for name, text in (("note", label.note), ("labeller", label.labeller)):
        if text:
            result.append({"from_name": name, **about, "type": "textarea", "value": {"text": [text]}})
    annotation: dict[str, Any] = {"result": result, "ground_truth": label.adjudicates, "was_cancelled": False}
    if label.seconds is not None:
        annotation["lead_time"] = label.seconds
    if label.created_at is not None:
        annotation["created_at"] = label.created_at.isoformat()
    return annotation


LABEL_STUDIO = LabelFormat(
    "label-studio", "Label Studio", (b'[\n{"data": {"trace_id": ', b"[\n]"), objects, _recognises, _read, _write
)

"""Read verdicts and spans from trace files and label files."""

from __future__ import annotations

from typing import Any

from calibrate.ingest.values import MAX_ID_LENGTH, MAX_NAME_LENGTH, FieldError, expected, name_or_none
from calibrate.types import KINDS, VERDICTS, Label, Span, Trace, Verdict


def labels_of(fields: dict[str, Any], trace: Trace) -> tuple[Label, ...]:
    """Read the label that came with a trace, if any. An unknown `label_type` becomes a note, a known one a kind."""
    verdict = fields.get("label")
    if verdict is None or verdict == "":
        return ()
    kind = name_or_none(fields.get("label_type"), "label_type", MAX_ID_LENGTH)
    return (
        Label(
            trace_id=trace.id,
            labeller="",
            verdict=as_verdict(verdict, "label"),
            kinds=(kind,) if kind in KINDS else (),
            spans=as_spans(fields.get("spans"), len(trace.answer)),
            note=None if kind is None or kind in KINDS else f"label_type: {kind}",
        ),
    )


def as_verdict(value: Any, name: str) -> Verdict:
    word = value.strip().lower() if isinstance(value, str) else value
    for verdict in VERDICTS:
        if word == verdict:
            return verdict
    raise expected(name, f"one of {', '.join(VERDICTS)}", value)


def as_spans(value: Any, length: int | None) -> tuple[Span, ...]:
    """Read `[{start, end, type}]`, in code points of an answer of this `length` (None: unknown)."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise expected("spans", "a list", value)
    spans = []
    for at, item in enumerate(value):
        start, end = (item.get("start"), item.get("end")) if isinstance(item, dict) else (None, None)
        if type(start) is not int or type(end) is not int:
            raise expected(f"spans[{at}]", "an object with whole numbers start and end", item)
        if not 0 <= start <= end or (length is not None and end > length):
            within = "" if length is None else f" of {length} characters"
            raise FieldError(f"spans[{at}]: {start} to {end} is not a part of the answer{within}")
        kind = item.get("type") if item.get("kind") is None else item["kind"]
        spans.append(Span(start, end, name_or_none(kind, f"spans[{at}].type", MAX_NAME_LENGTH)))
    return tuple(spans)

"""Argilla's records (version 2): `fields`, and the `responses` of users to the questions of a dataset.

Read as `Dataset.records.to_json` writes them, as the datasets that it makes for the Hugging Face Hub have them (one
column a question), and as its API lists them. Only submitted responses are labels. Argilla's page counts offsets of
spans in UTF-16 units, so these do.

References
----------
Records: https://docs.argilla.io/latest/reference/argilla/records/records
Export and import: https://docs.argilla.io/latest/how_to_guides/import_export
Responses: https://docs.argilla.io/latest/reference/argilla/records/responses
Offsets: https://github.com/argilla-io/argilla/issues/5729; the server refuses what ends beyond the code points
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TextIO
from uuid import NAMESPACE_URL, UUID, uuid5

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
    standing,
)
from calibrate.ingest.labels.documents import objects
from calibrate.ingest.labels.fields import parse_kinds
from calibrate.ingest.labels.offsets import to_utf16
from calibrate.ingest.labels.questions import KINDS_NAMES, NOTE_NAMES, VERDICT_NAMES, is_verdict
from calibrate.ingest.values import MAX_ID_LENGTH, MAX_NAME_LENGTH, FieldError, expected, name_or_none
from calibrate.ingest.verdicts import as_spans, as_verdict
from calibrate.types import Label, Span, Trace

ADJUDICATOR = "adjudicator"
_FLAT = ".responses"


class _Answer(NamedTuple):
    """One user's answer to one question; `status` is None where the file does not say."""

    user: str
    question: str
    value: Any
    status: str | None


def _recognises(fields: Mapping[str, object]) -> bool:
    return (isinstance(fields.get("fields"), dict) and "responses" in fields) or any(
        key.endswith(f"{_FLAT}.users") for key in fields
    )


def _read(rows: Iterable[Row]) -> Iterator[Read]:
    for number, row in enumerate(rows, start=1):
        where = f"record {number}"
        try:
            fields, trace_id = _of_record(row.fields)
            by_user: dict[str, list[_Answer]] = {}
            for answer in _answers(row.fields):
                by_user.setdefault(answer.user, []).append(answer)
        except FieldError as error:
            yield rejection(row.line, where, error)
            continue
        if not by_user:
            yield LeftOut("records without a response")
        text = next((fields[name] for name in ANSWERS if isinstance(fields.get(name), str)), None)
        for user, answers in by_user.items():
            yield from _read_response(row.line, f"{where}, user {user[:40]}", user, answers, trace_id, text)


def _of_record(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The fields of a record, and the id of its trace."""
    fields, metadata = record.get("fields"), record.get("metadata")
    fields = fields if isinstance(fields, dict) else record
    given = metadata.get("trace_id") if isinstance(metadata, dict) else record.get("trace_id")
    given = given or record.get("external_id") or record.get("id")
    trace_id = name_or_none(given, "id", MAX_ID_LENGTH)
    if trace_id is None:
        raise FieldError("id: missing")
    return fields, trace_id


def _answers(record: Mapping[str, Any]) -> Iterator[_Answer]:
    responses = record.get("responses")
    if isinstance(responses, dict):
        for question, given in responses.items():
            for each in _objects(given, f"responses.{question}"):
                yield _Answer(str(each.get("user_id") or ""), question, each.get("value"), each.get("status"))
    elif isinstance(responses, list):
        for each in _objects(responses, "responses"):
            values = each.get("values") or {}
            if not isinstance(values, dict):
                raise expected("responses[].values", "an object", values)
            for question, given in values.items():
                value = given.get("value") if isinstance(given, dict) else given
                yield _Answer(str(each.get("user_id") or ""), question, value, each.get("status"))
    elif responses is not None:
        raise expected("responses", "an object or a list", responses)
    else:
        yield from _flat_answers(record)


def _flat_answers(record: Mapping[str, Any]) -> Iterator[_Answer]:
    for key, users in record.items():
        if not key.endswith(f"{_FLAT}.users") or not isinstance(users, list):
            continue
        column = key.removesuffix(".users")
        values, statuses = record.get(column), record.get(f"{column}.status")
        if not isinstance(values, list) or len(values) != len(users):
            raise expected(column, f"a list of {len(users)} responses", values)
        statuses = statuses if isinstance(statuses, list) and len(statuses) == len(users) else [None] * len(users)
        question = column.removesuffix(_FLAT)
        yield from (_Answer(str(user), question, *given) for user, *given in zip(users, values, statuses, strict=True))


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise expected(name, "a list of objects", value)
    return value


def _read_response(
    line: int, where: str, user: str, answers: Sequence[_Answer], trace_id: str, text: str | None
) -> Iterator[Read]:
    status = next((answer.status for answer in answers if answer.status is not None), "submitted")
    if status != "submitted":
        yield LeftOut(f"{str(status)[:20]} responses")
        return
    label, labeller, left_out = Label(trace_id, "", "unsure"), user, []
    is_given = False
    try:
        for _, question, value, _ in answers:
            name = question.lower()
            if isinstance(value, list) and any(isinstance(item, dict) and "start" in item for item in value):
                label = replace(label, spans=label.spans + _spans(value, question))
            elif name in KINDS_NAMES and isinstance(value, list):
                label = replace(label, kinds=parse_kinds(value, question))
            elif name in VERDICT_NAMES or (is_verdict(value) and not is_given):
                verdict = as_verdict(value, question)
                if is_given and verdict != label.verdict:
                    raise FieldError(f"{question}: two verdicts, {label.verdict} and {verdict}; give one")
                label, is_given = replace(label, verdict=verdict), True
            elif name in NOTE_NAMES and isinstance(value, str):
                label = replace(label, note=value or None)
            elif name == "labeller" and isinstance(value, str):
                labeller = value
            elif name == "role" and value == ADJUDICATOR:
                label = replace(label, adjudicates=True)
            elif value not in (None, [], ""):
                left_out.append(f"answers to {question[:40]!r}")
        yield from map(LeftOut, left_out)
        if not is_given:
            raise FieldError("no verdict: none of its answers is clean, hallucinated or unsure")
        label = replace(label, labeller=name_or_none(labeller, "labeller", MAX_NAME_LENGTH) or "")
        yield Parsed(line, label, answer=text, units="utf-16", where=where)
    except FieldError as error:
        yield rejection(line, where, error)


def _spans(value: list[Any], question: str) -> tuple[Span, ...]:
    spans = as_spans([{**item, "type": item.get("label")} if isinstance(item, dict) else item for item in value], None)
    return tuple(Span(span.start, span.end, None if span.kind == NO_KIND else span.kind) for span in spans)


def _write(labels: Iterable[Label], load: Callable[[Sequence[str]], Mapping[str, Trace]], file: TextIO) -> Written:
    lost: Counter[Lost] = Counter()
    count, comma = 0, "\n"
    file.write("[")
    for trace_id, group, trace in in_batches(by_trace(labels), load):
        answer = trace.answer if trace is not None else ""
        latest = standing(group, lost)
        responses: dict[str, list[dict[str, Any]]] = {}
        for label in latest:
            for question, value in _values(label, answer):
                about = {"user_id": _user_id(label), "status": "submitted"}
                responses.setdefault(question, []).append({"value": value, **about})
            _count_lost(label, answer, lost)
        record = {
            "fields": {"answer": answer, "question": (trace.question if trace else None) or ""},
            "id": trace_id,
            "metadata": {},
            "suggestions": {},
            "responses": responses,
            "vectors": {},
        }
        file.write(comma + json.dumps(record, ensure_ascii=False))
        comma = ",\n"
        count += len(latest)
        lost["purged"] += 0 if trace is not None and trace.purged_at is None else len(latest)
    file.write("\n]\n")
    return Written(count, +lost)


def _values(label: Label, answer: str) -> Iterator[tuple[str, Any]]:
    """The answers of one label to the questions of a dataset; an empty one is none."""
    yield "verdict", label.verdict
    if label.kinds:
        yield "kinds", list(label.kinds)
    if label.spans:
        yield (
            "spans",
            [
                {
                    "start": to_utf16(answer, span.start),
                    "end": to_utf16(answer, span.end),
                    "label": span.kind or NO_KIND,
                }
                for span in label.spans
            ],
        )
    if label.note:
        yield "note", label.note
    if label.labeller != _user_id(label):
        yield "labeller", label.labeller
    if label.adjudicates:
        yield "role", ADJUDICATOR


def _user_id(label: Label) -> str:
    """A labeller's user in Argilla: the labeller's own name where it came from there, else an id made from it."""
    try:
        if not label.adjudicates:
            return str(UUID(label.labeller)) if str(UUID(label.labeller)) == label.labeller else _made_up(label)
    except ValueError:
        pass
    return _made_up(label)


def _made_up(label: Label) -> str:
    return str(
        uuid5(NAMESPACE_URL, f"touchstone:{'adjudicator' if label.adjudicates else 'labeller'}:{label.labeller}")
    )


def _count_lost(label: Label, answer: str, lost: Counter[Lost]) -> None:
    lost["time"] += label.created_at is not None
    lost["seconds"] += label.seconds is not None
    lost["sample"] += label.sample is not None
    lost["past_end"] += any(to_utf16(answer, span.end) > len(answer) for span in label.spans)


ARGILLA = LabelFormat(
    "argilla", "Argilla", (b'[\n{"fields": {"answer": ', b"[\n]"), objects, _recognises, _read, _write
)

"""JSON lines: one label a line, with everything that the store has of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from calibrate.ingest.base import Row
from calibrate.ingest.labels.base import LabelFormat, Parsed, Read, Written, rejection
from calibrate.ingest.labels.documents import objects
from calibrate.ingest.labels.fields import build_label, label_fields
from calibrate.ingest.values import FieldError
from calibrate.types import Label, Trace


def _recognises(fields: Mapping[str, object]) -> bool:
    return "verdict" in fields or "label" in fields


def _read(rows: Iterable[Row]) -> Iterator[Read]:
    for row in rows:
        try:
            yield Parsed(row.line, build_label(row.fields))
        except FieldError as error:
            yield rejection(row.line, "", error)


def _write(labels: Iterable[Label], load: Callable[[Sequence[str]], Mapping[str, Trace]], file: TextIO) -> Written:
    count = 0
    for count, label in enumerate(labels, start=1):  # noqa: B007
        fields = {name: value for name, value in label_fields(label).items() if value not in (None, [])}
        file.write(json.dumps(fields, ensure_ascii=False) + "\n")
    return Written(count, {})


JSONL = LabelFormat("jsonl", "JSON lines", (b'{"trace_id": ',), objects, _recognises, _read, _write)

"""Preview the beginning of a file, for choosing which column holds which field."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of, read
from calibrate.ingest.inspection.profile import NOTHING, Profile, Profiler
from calibrate.ingest.values import repair
from calibrate.types import Record

ALIASES: Mapping[str, tuple[str, ...]] = {
    "trace_id": ("trace_id", "id", "traceid", "request_id", "run_id", "example_id"),
    "timestamp": ("timestamp", "time", "created_at", "created", "start_time", "date", "datetime", "ts"),
    "model": ("model", "model_name", "model_id", "llm"),
    "operation": ("operation", "task", "route", "endpoint", "feature"),
    "question": ("question", "query", "prompt", "input", "user_input", "user_message", "instruction"),
    "context": ("context", "contexts", "documents", "passage", "passages", "reference", "knowledge"),
    "sources": ("sources", "retrieved_contexts", "retrieved_documents", "chunks"),
    "answer": ("answer", "response", "output", "completion", "generated_text", "generation", "reply", "text"),
    "label": ("label", "verdict"),
}
"""Names of our fields in other tools, the likeliest first."""

LOOK_AT = 1000
LOOK_AT_BYTES = 32 * 1024 * 1024

_MAX_CELL = 500


@dataclass(frozen=True, slots=True)
class Preview:
    """What a file is, and its first rows, read with the mapping passed or else with the suggested one.

    `columns` are those from which the fields may be chosen: empty for a format whose fields have their places.
    `suggested` maps fields to the columns that probably hold them. `raw` has the cells as text, long ones shortened;
    `records` has the records that an import would read from the first rows, and `problem` why it would refuse the file.
    `profile` counts the fields of the records that were looked at, and `rejected` those that would be: of the whole
    file (`is_whole`), or of its beginning.
    """

    format: str
    columns: tuple[str, ...]
    suggested: Mapping[str, str]
    raw: tuple[Mapping[str, str], ...]
    records: tuple[Record | Rejected, ...]
    problem: str | None = None
    title: str = ""
    profile: Profile = NOTHING
    rejected: tuple[Rejected, ...] = ()
    is_whole: bool = False
    is_benchmark: bool = False


def preview(
    path: str | os.PathLike[str],
    *,
    rows: int = 5,
    look_at: int = LOOK_AT,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
) -> Preview:
    """Preview a file. Shows its first `rows` and looks at `look_at` of them, or fewer where they are large."""
    with InputFile(path) as file:
        chosen = format_of(file, format)
        raw = []
        if chosen.plain:
            raw = [row.fields for row in islice(chosen.raw(file), rows) if isinstance(row, Row)]
    # Every row of a table has all its columns, but JSON lines differ in their keys.
    names = tuple(dict.fromkeys(name for fields in raw for name in fields))
    suggested = suggest(names)
    mapping = (suggested if columns is None else columns) if chosen.plain else {}
    first: list[Record | Rejected] = []
    rejected: list[Rejected] = []
    profiler, size, problem, is_whole = Profiler(), 0, None, True
    try:
        for number, record in enumerate(read(path, format=chosen.name, columns=mapping)):
            if number >= look_at or size > LOOK_AT_BYTES:
                is_whole = False
                break
            if number < rows:
                first.append(record)
            if isinstance(record, Rejected):
                rejected.append(record)
            else:
                profiler.add(record)
                size += record.size
    except BadInput as error:
        problem, is_whole = str(error), False
    return Preview(
        format=chosen.name,
        columns=names,
        suggested=suggested,
        raw=tuple({name: _cell(value) for name, value in fields.items()} for fields in raw),
        records=tuple(first),
        problem=problem,
        title=chosen.title or chosen.name,
        profile=profiler.profile(),
        rejected=tuple(rejected),
        is_whole=is_whole,
        is_benchmark=chosen.benchmark,
    )


def suggest(columns: Sequence[str]) -> Mapping[str, str]:
    """Map fields to the columns that probably hold them. Fields without such a column are left out."""
    by_plain_name = {re.sub(r"[\s\-.]+", "_", column.lower()): column for column in reversed(columns)}
    suggested: dict[str, str] = {}
    for field, aliases in ALIASES.items():
        for alias in aliases:
            if alias in by_plain_name:
                suggested[field] = by_plain_name.pop(alias)
                break
    return suggested


def columns_to_name(shown: Preview) -> Mapping[str, str]:
    """The suggested columns that fill their field only where that is said: `{"answer": "response"}`."""
    is_table = shown.format in ("csv", "parquet")

    def is_read(field: str, column: str) -> bool:
        name = re.sub(r"[\s\-]+", "_", column.lower()) if is_table else column
        return name == field or (field == "trace_id" and name == "id")

    return {field: column for field, column in shown.suggested.items() if not is_read(field, column)}


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
    text = str(repair(text).value)
    return text if len(text) <= _MAX_CELL else text[:_MAX_CELL] + "…"

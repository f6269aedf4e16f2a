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

_MAX_CELL = 500


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a file, read with the mapping passed or else with the suggested one.

    `suggested` maps fields to the columns that probably hold them. `raw` has the cells as text, long ones shortened;
    `records` has the records that an import would read from the rows, and `problem` why it would refuse the file.
    """

    format: str
    columns: tuple[str, ...]
    suggested: Mapping[str, str]
    raw: tuple[Mapping[str, str], ...]
    records: tuple[Record | Rejected, ...]
    problem: str | None = None


def preview(
    path: str | os.PathLike[str], *, rows: int = 5, format: str = "auto", columns: Mapping[str, str] | None = None
) -> Preview:
    """Preview a file. Reads no more of it than its first rows."""
    with InputFile(path) as file:
        chosen = format_of(file, format)
        raw = [row.fields for row in islice(chosen.raw(file), rows) if isinstance(row, Row)]
    # Every row of a table has all its columns, but JSON lines differ in their keys.
    names = tuple(dict.fromkeys(name for fields in raw for name in fields))
    suggested = suggest(names)
    records: list[Record | Rejected] = []
    problem = None
    try:
        records.extend(islice(read(path, format=chosen.name, columns=suggested if columns is None else columns), rows))
    except BadInput as error:
        problem = str(error)
    return Preview(
        format=chosen.name,
        columns=names,
        suggested=suggested,
        raw=tuple({name: _cell(value) for name, value in fields.items()} for fields in raw),
        records=tuple(records),
        problem=problem,
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


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
    text = str(repair(text).value)
    return text if len(text) <= _MAX_CELL else text[:_MAX_CELL] + "…"

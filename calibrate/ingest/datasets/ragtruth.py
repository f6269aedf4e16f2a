"""RAGTruth: `response.jsonl` with `source_info.jsonl` beside it (ParticleMedia/RAGTruth, dataset/, as its README.md has
them).

A response holds id, source_id, model, temperature, labels (start, end, text, label_type …), split, quality and
response; a source holds source_id, task_type (QA, Summary, Data2txt), source, source_info and prompt. The `source_info`
of a question is {question, passages}, the passages one text with "passage 1:" before each. A response with a span is
hallucinated.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.datasets.objects import objects, rows_of, text
from calibrate.ingest.files import InputFile
from calibrate.ingest.json_document import json_objects
from calibrate.ingest.values import FieldError

TITLE = "RAGTruth data set"
RESPONSES, SOURCES = "response", "source_info"

_OPENING = re.compile(rb"^[\s\xef\xbb\xbf\[]*\{")
_SOURCE = re.compile(rb'"source_info"\s*:')
_RESPONSE = re.compile(rb'"source_id"\s*:.*"labels"\s*:|"labels"\s*:.*"source_id"\s*:', re.DOTALL)
_PASSAGE = re.compile(r"(?:^|\n)passage (\d+):")


def _sniff(head: bytes) -> bool:
    if not _OPENING.match(head) or b'"source_id"' not in head:
        return False
    is_source = _SOURCE.search(head) and b'"task_type"' in head
    return bool(is_source or (_RESPONSE.search(head) and b'"response"' in head))


def _rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    is_source = _SOURCE.search(file.head) and b'"prompt"' in file.head
    with closing(sqlite3.connect("")) as sources:  # a temporary file: sources may be larger than memory
        if is_source:
            _keep(sources, file)
            with InputFile(_beside(file, RESPONSES)) as responses:
                yield from rows_of(responses, columns or {}, TITLE, lambda fields: [_trace(fields, sources)])
        else:
            with InputFile(_beside(file, SOURCES)) as source_file:
                _keep(sources, source_file)
            yield from rows_of(file, columns or {}, TITLE, lambda fields: [_trace(fields, sources)])


def _beside(file: InputFile, name: str) -> str:
    """The other of the two files, in the same folder. Raises BadInput where it is not there."""
    for ending in (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json"):
        path = file.path.with_name(name + ending)
        if path.is_file():
            return str(path)
    raise BadInput(
        f"{file.name} is one of RAGTruth's two files, and {name}.jsonl is not beside it: give both, in one folder"
    )


def _keep(sources: sqlite3.Connection, file: InputFile) -> None:
    sources.execute("PRAGMA synchronous = OFF")
    sources.execute("CREATE TABLE source (id TEXT PRIMARY KEY, fields TEXT) WITHOUT ROWID")
    for item in json_objects(file):
        if isinstance(item, Row) and isinstance(item.fields.get("source_id"), (str, int)):
            row = (str(item.fields["source_id"]), json.dumps(item.fields))
            sources.execute("INSERT OR IGNORE INTO source VALUES (?, ?)", row)


def _trace(fields: dict[str, Any], sources: sqlite3.Connection) -> dict[str, Any]:
    source_id = fields.get("source_id")
    if not isinstance(source_id, (str, int)):
        raise FieldError("source_id: missing")
    stored = sources.execute("SELECT fields FROM source WHERE id = ?", (str(source_id),)).fetchone()
    if stored is None:
        raise FieldError(f"source_id: there is no source {str(source_id)[:40]!r} in {SOURCES}.jsonl")
    source = json.loads(stored[0])
    labels = objects(fields, "labels")
    spans = [{"start": span.get("start"), "end": span.get("end"), "type": span.get("label_type")} for span in labels]
    number = fields.get("id")
    return {
        "trace_id": f"ragtruth-{number}" if isinstance(number, (str, int)) else None,
        "answer": text(fields, "response"),
        **_given(source),
        "model": fields.get("model"),
        "operation": source.get("task_type"),
        "label": "hallucinated" if spans else "clean",
        "spans": spans,
        "source_id": source_id,
        "dataset": "RAGTruth",
        "split": fields.get("split"),
        "quality": fields.get("quality"),
        "temperature": fields.get("temperature"),
        "source": source.get("source"),
    }


def _given(source: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, and the passages: of a question, else the one text or the data that was to be put into words."""
    info, prompt = source.get("source_info"), source.get("prompt")
    if isinstance(info, dict) and isinstance(info.get("passages"), str):
        return {"question": info.get("question"), "sources": _passages(info["passages"])}
    lines = prompt.split("\n") if isinstance(prompt, str) else []
    question = next((line for line in lines if line.strip() and line.strip() != "Instruction:"), None)
    content = info if isinstance(info, str) else json.dumps(info, ensure_ascii=False)
    return {"question": question, "sources": {"1": content}}


def _passages(passages: str) -> dict[str, str]:
    """The passages by their numbers; a text without numbers is one passage."""
    parts = _PASSAGE.split(passages)
    if len(parts) < 3:
        return {"1": passages}
    return {number: passage.strip() for number, passage in zip(parts[1::2], parts[2::2], strict=True)}


FORMATS = (Format("ragtruth", (), _sniff, _rows, _rows, TITLE, benchmark=True),)

"""Files of Phoenix and MLflow, read as traces: one for each answer of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.exports import mlflow, phoenix
from calibrate.ingest.exports.fields import mapping
from calibrate.ingest.exports.reading import Gathered, objects_of
from calibrate.ingest.exports.remarks import Verdicts, sort_remarks, targets_of, with_remarks
from calibrate.ingest.files import InputFile
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.table import parquet_rows
from calibrate.ingest.values import FieldError

_OPENING = re.compile(rb"^[\s\xef\xbb\xbf\[]*\{")
_PHOENIX_KIND = re.compile(rb'"span_kind"\s*:')
_PHOENIX_IDS = re.compile(rb'"context"\s*:\s*\{[^{}]*"span_id"|"context\.span_id"\s*:|"status_code"\s*:')
_MLFLOW = re.compile(
    rb'"(?:trace_location|request_metadata|trace_metadata|mlflow\.(?:spanType|traceRequestId|traceName))"\s*:'
)
NESTED = "not usable JSON: it is nested too deeply"


def phoenix_rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    """Read the answers in spans of Phoenix: JSON of its API, or its dataframe as JSON, JSON lines or Parquet.

    Parameters
    ----------
    file : InputFile
    columns : mapping
        Empty: the fields are Phoenix's own.

    Yields
    ------
    Row or Rejected
        One for each answer; one rejection for each span that cannot be read.
    """
    _refuse_columns(file, columns, "Phoenix")
    gathered, spans, rows = Gathered(), 0, 0
    items = parquet_rows(file) if file.head.startswith(b"PAR1") else objects_of(file)
    for item in items:
        if isinstance(item, Rejected):
            rows += 1
            yield item
            continue
        try:
            gathered.add(phoenix.span_of(item.fields).trace_id, item.line, _plain(item.fields))
            spans += 1
        except (FieldError, RecursionError) as error:
            rows += 1
            yield Rejected(item.line, str(error) if isinstance(error, FieldError) else NESTED)
    reader = Reader(tool_results=settings.imports().tool_results)
    for line, listed in gathered.groups():
        for answer in answers_of([phoenix.span_of(fields) for fields in listed], reader):
            rows += 1
            yield row_of(answer, line)
    if spans and not rows:
        raise _no_answer(file, "Phoenix")


def mlflow_rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    """Read the answers in traces of MLflow: `Trace.to_json`, one a line or in a list, or a frame of `search_traces`.

    Parameters
    ----------
    file : InputFile
    columns : mapping
        Empty: the fields are MLflow's own.

    Yields
    ------
    Row or Rejected
        One for each answer, with the scores of programs and the labels of people; one rejection for each trace that
        cannot be read.
    """
    _refuse_columns(file, columns, "MLflow")
    reader, traces, rows = Reader(tool_results=settings.imports().tool_results), 0, 0
    for item in objects_of(file):
        if isinstance(item, Rejected):
            rows += 1
            yield item
            continue
        traces += 1
        try:
            document = mapping(item.fields.get("trace")) or item.fields
            built = mlflow.build_trace(document)
            answers = list(answers_of(built.spans, reader))
            remarks = sort_remarks(built.remarks, targets_of(built.spans, answers), Verdicts(), "mlflow", item.line)
        except (FieldError, RecursionError) as error:
            rows += 1
            yield Rejected(item.line, str(error) if isinstance(error, FieldError) else NESTED)
            continue
        for row in with_remarks([row_of(answer, item.line) for answer in answers], remarks):
            rows += 1
            yield row
    if traces and not rows:
        raise _no_answer(file, "MLflow")


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a Parquet file has times that are no JSON."""
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in fields.items() if value == value
    }  # fmt: skip


def _no_answer(file: InputFile, system: str) -> BadInput:
    return BadInput(
        f"{file.name} holds traces of {system} without an answer of a model; there is nothing to score: export traces "
        "in which a model answers"
    )


def _refuse_columns(file: InputFile, columns: Mapping[str, str] | None, system: str) -> None:
    if columns:
        raise BadInput(f"{file.name} is an export of {system}, whose fields have their places: leave the columns out")


def _is_phoenix(head: bytes) -> bool:
    return bool(_OPENING.match(head) and _PHOENIX_KIND.search(head) and _PHOENIX_IDS.search(head))


def _is_mlflow(head: bytes) -> bool:
    return bool(_OPENING.match(head) and _MLFLOW.search(head))


FORMATS = (
    Format("phoenix", (), _is_phoenix, phoenix_rows, phoenix_rows, "Phoenix export"),
    Format("mlflow", (), _is_mlflow, mlflow_rows, mlflow_rows, "MLflow export"),
)

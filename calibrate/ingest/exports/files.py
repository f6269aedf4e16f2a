"""Files that Langfuse and LangSmith export, read as traces: one for each answer of a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.exports import langfuse, langsmith
from calibrate.ingest.exports.reading import Gathered, objects_of
from calibrate.ingest.exports.remarks import Verdicts, sort_remarks, targets_of, with_remarks
from calibrate.ingest.files import InputFile
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.table import csv_rows, header_of
from calibrate.ingest.values import FieldError

Result = Row | Rejected

_LANGFUSE = re.compile(
    rb'^[\s\xef\xbb\xbf\[]*\{\s*"(?:trace"\s*:\s*\{\s*"(?:id|projectId|name|timestamp)"|observations"\s*:\s*\[)'
)
# A row of observations or of traces, by names that no other system uses.
_LANGFUSE_ROW = re.compile(
    rb'"(?:parentObservationId|internalModelId|observationLevels|htmlPath|bookmarked|promptVersion)"\s*:|'
    rb'"type"\s*:\s*"(?:GENERATION|RETRIEVER|SPAN|EVENT|AGENT|CHAIN)"'
)
_OPENING = re.compile(rb"^[\s\xef\xbb\xbf\[]*\{")
_LANGSMITH = re.compile(rb'"run_type"\s*:\s*"(?:llm|chain|tool|retriever|embedding|prompt|parser)"')
_LANGSMITH_ROW = re.compile(rb'"(?:trace_id|dotted_order|parent_run_id|session_id|start_time|inputs)"\s*:')


class _Intake:
    """Reads traces, and counts what is in them: that tells why a file holds no answer."""

    def __init__(self, file: InputFile, system: str, call: str) -> None:
        self._file, self._system, self._call = file, system, call
        self._reader = Reader(tool_results=settings.imports().tool_results)
        self.traces = self.calls = self.rows = 0

    def read(
        self, line: int, build: Callable[[], langfuse.LangfuseTrace | langsmith.LangSmithTrace]
    ) -> Iterator[Result]:
        """Read one trace: all of its answers, or a rejection."""
        try:
            rows = self._answers(line, build())
        except FieldError as error:
            rows = [self.reject(line, str(error))]
        except RecursionError:
            rows = [self.reject(line, "not usable JSON: it is nested too deeply")]
        self.rows += len(rows)
        yield from rows

    def reject(self, line: int, reason: str) -> Rejected:
        self.rows += 1
        return Rejected(line, reason)

    def finish(self) -> None:
        """Raise BadInput where there were traces, but no answer in any."""
        if self.rows or not self.traces:
            return
        traces = "1 trace" if self.traces == 1 else f"{self.traces:,} traces"
        calls = f": {self.calls:,} {self._call} in it only call tools" if self.calls else ""
        raise BadInput(
            f"{self._file.name} holds {traces} of {self._system} without an answer{calls}; there is nothing to score: "
            "export traces in which the model answers"
        )

    def _answers(self, line: int, built: langfuse.LangfuseTrace | langsmith.LangSmithTrace) -> list[Row | Rejected]:
        self.traces += 1
        self.calls += built.calls
        answers = list(answers_of(built.spans, self._reader))
        rows = [row_of(answer, line) for answer in answers]
        if isinstance(built, langfuse.LangfuseTrace) and built.scores and rows:
            remarks = [langfuse.remark_of(score) for score in built.scores]
            targets = targets_of(built.spans, answers)
            rows = with_remarks(rows, sort_remarks(remarks, targets, Verdicts(), "langfuse", line))
        return list(rows)


def langfuse_rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Result]:
    """Read the answers of a Langfuse export: of its API, or of the tables of its pages, as JSON or CSV.

    Parameters
    ----------
    file : InputFile
    columns : mapping
        Empty: the fields are Langfuse's own.

    Yields
    ------
    Row or Rejected
        One for each answer; one rejection for each trace that cannot be read.
    """
    _refuse_columns(file, columns, "Langfuse")
    gathered, intake = Gathered(), _Intake(file, "Langfuse", "generations")
    for item in _cells_of(file) if _is_langfuse_table(file.head) else objects_of(file):
        if isinstance(item, Rejected):
            yield intake.reject(item.line, item.reason) if not item.last else item
            intake.rows += item.last
            continue
        fields = item.fields
        trace, observations = fields.get("trace"), fields.get("observations")
        if isinstance(trace, dict) and isinstance(observations, list):
            yield from intake.read(item.line, partial(langfuse.build_trace, trace, observations))
        elif isinstance(observations, list) and "traceId" not in fields:
            yield from intake.read(item.line, partial(langfuse.build_trace, fields, observations))
        elif isinstance(name := fields.get("traceId", fields.get("trace_id")), str) and name:
            gathered.add(name, item.line, fields)
        elif fields.get("id") and ("input" in fields or "output" in fields):
            yield from intake.read(item.line, partial(langfuse.build_trace, fields, []))
        else:
            yield intake.reject(item.line, "neither a trace nor an observation of Langfuse: it has no traceId")
    for line, rows in gathered.groups():
        yield from intake.read(line, partial(langfuse.build_trace, None, rows))
    intake.finish()


def langsmith_rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Result]:
    """Read the answers of LangSmith's runs.

    Parameters
    ----------
    file : InputFile
    columns : mapping
        Empty: the fields are LangSmith's own.

    Yields
    ------
    Row or Rejected
        One for each answer; one rejection for each trace that cannot be read.
    """
    _refuse_columns(file, columns, "LangSmith")
    gathered, intake = Gathered(), _Intake(file, "LangSmith", "calls of a model")
    for item in objects_of(file):
        if isinstance(item, Rejected):
            yield intake.reject(item.line, item.reason) if not item.last else item
            intake.rows += item.last
            continue
        try:
            runs = [(langsmith.trace_id_of(run), run) for run in langsmith.flatten(item.fields)]
        except FieldError as error:
            yield intake.reject(item.line, str(error))
            continue
        for trace_id, run in runs:
            gathered.add(trace_id, item.line, {key: value for key, value in run.items() if key != "child_runs"})
    for line, rows in gathered.groups():
        yield from intake.read(line, partial(langsmith.build_trace, rows))
    intake.finish()


def _refuse_columns(file: InputFile, columns: Mapping[str, str] | None, system: str) -> None:
    if columns:
        raise BadInput(f"{file.name} is an export of {system}, whose fields have their places: leave the columns out")


def _cells_of(file: InputFile) -> Iterator[Result]:
    """The rows of a table that Langfuse exports as CSV, without their empty cells."""
    for item in csv_rows(file):
        filled = {} if isinstance(item, Rejected) else {name: cell for name, cell in item.fields.items() if cell}
        yield item if isinstance(item, Rejected) else replace(item, fields=filled)


def _is_langfuse_table(head: bytes) -> bool:
    """Whether a file is CSV with the columns of Langfuse's table of observations or of traces."""
    columns = set(header_of(head))
    return {"id", "input", "output"} <= columns and any(
        names <= columns for names in ({"traceId", "startTime"}, {"sessionId", "userId", "timestamp"})
    )


def _is_langfuse(head: bytes) -> bool:
    if _LANGFUSE.search(head) or _is_langfuse_table(head):
        return True
    return bool(_OPENING.match(head) and b'"run_type"' not in head and _LANGFUSE_ROW.search(head))


def _is_langsmith(head: bytes) -> bool:
    return bool(_OPENING.match(head) and _LANGSMITH.search(head) and _LANGSMITH_ROW.search(head))


FORMATS = (
    Format("langfuse", (".csv",), _is_langfuse, langfuse_rows, langfuse_rows, "Langfuse export"),
    Format("langsmith", (), _is_langsmith, langsmith_rows, langsmith_rows, "LangSmith export"),
)

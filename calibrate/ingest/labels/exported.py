"""Labels in the exports of systems that hold traces: what people said there of an answer.

They are read only: these systems take no file of labels. A score of a program is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.labels.base import LeftOut, Read, rejection
from calibrate.ingest.spans.record import answer_id
from calibrate.ingest.values import FieldError

# What exports need is imported when one is read: it needs labels itself.


@dataclass(frozen=True, slots=True)
class ExportedLabels:
    """An export with labels in it: its name, how its records are told, and how the labels of one are read."""

    name: str
    recognises: Callable[[Mapping[str, object]], bool]
    read_one: Callable[[Row], Iterator[Read]]

    def rows(self, file: InputFile) -> Iterator[Row | Rejected]:
        """Read the records of a file."""
        from calibrate.ingest.exports.reading import objects_of

        return objects_of(file)

    def read(self, rows: Iterable[Row]) -> Iterator[Read]:
        """Read the labels of records."""
        for row in rows:
            try:
                yield from self.read_one(row)
            except (FieldError, RecursionError) as error:
                yield rejection(row.line, "", FieldError(str(error)))


def _read_langfuse(row: Row) -> Iterator[Read]:
    from calibrate.ingest.exports.langfuse import build_trace, remark_of
    from calibrate.ingest.exports.remarks import targets_of
    from calibrate.ingest.spans.answers import answers_of

    trace, observations = row.fields.get("trace", row.fields), row.fields.get("observations")
    if not isinstance(trace, dict) or not isinstance(observations, list):
        yield LeftOut("observations without their trace")
        return
    built = build_trace(trace, observations)
    targets = targets_of(built.spans, list(answers_of(built.spans)))
    yield from _sort(row, [remark_of(score) for score in built.scores], targets, "langfuse")


def _read_langsmith(row: Row) -> Iterator[Read]:
    from calibrate.ingest.exports.langsmith import remark_of

    run, trace = row.fields.get("run_id"), row.fields.get("trace_id")
    targets: dict[str | None, str] = {str(run): answer_id(str(trace or run), str(run))} if run else {}
    yield from _sort(row, [remark_of(row.fields)], targets, "langsmith")


def _sort(row: Row, remarks: list[Any], targets: Mapping[str | None, str], system: str) -> Iterator[Read]:
    from calibrate.ingest.exports.remarks import Verdicts, sort_remarks

    sorted_out = sort_remarks(remarks, targets, Verdicts(), system, row.line)
    yield from sorted_out.labels
    for name, scores in sorted_out.scores.items():
        yield from (LeftOut(f"scores {name}") for _ in scores)
    for what, count in sorted_out.left_out.items():
        yield from (LeftOut(what) for _ in range(count))


def _has(fields: Mapping[str, object], *, names: tuple[str, ...]) -> bool:
    return all(name in fields for name in names)


EXPORTED = (
    ExportedLabels("langfuse", partial(_has, names=("trace", "observations")), _read_langfuse),
    ExportedLabels("langsmith", partial(_has, names=("feedback_source", "run_id")), _read_langsmith),
)

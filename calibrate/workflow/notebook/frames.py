"""Frames to rows as a file has them, and what the store holds to frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.labels.base import Parsed, rejection
from calibrate.ingest.labels.fields import build_label
from calibrate.ingest.labels.table import parse_kinds_cell
from calibrate.ingest.table import fields_of, to_record_row
from calibrate.ingest.values import FieldError, decode_json, repair
from calibrate.types import Trace

if TYPE_CHECKING:
    import pandas as pd


def rows_of(frame: pd.DataFrame, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    """Read each row of a frame as one of a table: a column fills the field of its name, or the one that `columns` says.

    A row's `line` counts from 1.
    """
    header = header_of(frame)
    fields = fields_of(header, columns or {}, "the frame")
    for line, cells in cells_of(frame):
        yield cells if isinstance(cells, Rejected) else to_record_row(Row(line, cells, _size(cells)), fields)


def check_frame(frame: object, purpose: str) -> None:
    """Raise BadInput for what is no frame, and for one without rows."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        what = "None" if frame is None else f"a {type(frame).__name__}"
        raise BadInput(f"{what} is no frame: pass a pandas DataFrame, one trace or label a row")
    if not len(frame):
        raise BadInput(f"the frame has no rows: there is nothing to {purpose}")


def header_of(frame: pd.DataFrame) -> list[str]:
    """The names of the columns. Raises BadInput for a name that occurs twice."""
    header = [str(column) for column in frame.columns]
    for name in header:
        if header.count(name) > 1:
            raise BadInput(f"the frame has two columns {name!r}; rename one of them")
    return header


def cells_of(frame: pd.DataFrame) -> Iterator[tuple[int, dict[str, Any] | Rejected]]:
    """The cells of each row by column, as values that JSON has, with the row's line, counted from 1."""
    header = header_of(frame)
    for line, cells in enumerate(frame.itertuples(index=False, name=None), start=1):
        try:
            yield line, {name: _plain(cell) for name, cell in zip(header, cells, strict=True)}
        except RecursionError:
            yield line, Rejected(line, str(FieldError("not usable: a cell is nested too deeply")))


def _plain(cell: Any) -> Any:
    """A cell without what numpy and pandas wrap around it; None for a missing one."""
    if cell is None or isinstance(cell, str) or type(cell) in (int, float, bool):
        return cell
    if isinstance(cell, dict):
        return {str(key): _plain(value) for key, value in cell.items()}
    if isinstance(cell, (list, tuple)):
        return [_plain(value) for value in cell]
    if type(cell).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(cell, "to_pydatetime"):
        return cell.to_pydatetime(warn=False)
    return _plain(cell.tolist()) if type(cell).__module__ == "numpy" else cell


def _size(cells: Mapping[str, Any]) -> int:
    return sum(len(cell) for cell in cells.values() if isinstance(cell, str))


def label_rows(frame: pd.DataFrame) -> Iterator[Parsed | Rejected]:
    """Read each row of a frame as a label, with the columns that a CSV file of labels has."""
    header = header_of(frame)
    for name, others in (("trace_id", ()), ("verdict", ("label",))):
        if not {name, *others} & {column.lower() for column in header}:
            raise BadInput(f"the frame has no column {name!r}; it has {', '.join(map(repr, header[:20]))}")
    for line, cells in cells_of(frame):
        if isinstance(cells, Rejected):
            yield cells
            continue
        try:
            yield Parsed(line, build_label(_label_fields(cells)))
        except FieldError as error:
            yield rejection(line, "", error)


def _label_fields(cells: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        name.lower(): repair(cell).value
        for name, cell in cells.items()
        if cell is not None and cell != "" and not (isinstance(cell, float) and math.isnan(cell))
    }
    for name, parse in (("kinds", parse_kinds_cell), ("spans", decode_json)):
        if isinstance(fields.get(name), str):
            fields[name] = parse(fields[name])
    return fields


def rejections(frame: pd.DataFrame, rejected: Iterable[Rejected]) -> pd.DataFrame:
    """Rejections under their rows' index in the frame that they came from."""
    import pandas as pd

    rows = [(rejection.line - 1, rejection.reason) for rejection in rejected]
    index = frame.index[[row for row, _ in rows]]
    return pd.DataFrame(rows, columns=["row", "reason"], index=index).astype({"row": "int64"})


TRACE_COLUMNS = (
    "trace_id", "timestamp", "model", "operation", "group", "question", "answer", "context", "sources", "tokens",
    "alternatives", "schema", "attributes", "gold",
)  # fmt: skip


def trace_cells(trace: Trace, gold: str | None) -> dict[str, Any]:
    """A trace as a record of a file has it, with its gold verdict."""
    return {
        "trace_id": trace.id,
        "timestamp": trace.timestamp,
        "model": trace.model,
        "operation": trace.operation,
        "group": trace.group,
        "question": trace.question,
        "answer": trace.answer,
        "context": trace.context,
        "sources": [
            {"number": s.number, "text": s.text, "title": s.title, "retrieval_score": s.retrieval_score}
            for s in trace.sources
        ],
        "tokens": None
        if trace.tokens is None
        else [
            {
                "token": t.text,
                "logprob": t.logprob,
                "top_logprobs": [{"token": text, "logprob": value} for text, value in t.top],
            }
            for t in trace.tokens
        ],
        "alternatives": list(trace.alternatives),
        "schema": trace.schema,
        "attributes": dict(trace.attributes),
        "gold": gold,
    }


def frame_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """A frame with these columns, in this order, also where there are no rows."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns))

"""Write scores to a file for somebody's own analysis: CSV, Parquet or JSON lines, by the file's ending."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from calibrate.errors import BadInput, TouchstoneError
from calibrate.sanitize import cell
from calibrate.targets import Kind, replacing

ROW_GROUP = 10_000  # rows of a Parquet file in memory at once


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """One trace under one configuration of a detector. `status` is "not run" where the detector never saw it."""

    trace_id: str
    gold: str | None
    score: float | None
    status: str
    reason: str | None
    detector: str
    version: str
    params: Mapping[str, Any]


COLUMNS = tuple(field.name for field in fields(ScoreRecord))
BEGINNINGS = (",".join(COLUMNS).encode(), b'{"trace_id": ', b"PAR1")  # of each format
SCORES = Kind("a file of scores", lambda content: content.startswith(BEGINNINGS))
Write = Callable[[Iterable[ScoreRecord], Path], None]


def writer_for(path: str) -> Write:
    """Return what writes a file of this ending. Raises BadInput for any other."""
    writer = _WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        raise BadInput(f"cannot write scores to {path!r}: its ending must be one of {', '.join(_WRITERS)}")
    return writer


def write_scores(records: Iterable[ScoreRecord], path: str) -> None:
    """Write the records as they come; nothing is kept. An older file is replaced when all are written."""
    write, target = writer_for(path), Path(path)
    try:
        with replacing(target) as temporary:
            write(records, temporary)
    except OSError as error:
        raise TouchstoneError(f"cannot write {path!r}: {error.strerror or error}") from None


def _write_csv(records: Iterable[ScoreRecord], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([cell(value) for value in _flat(record).values()] for record in records)


def _write_jsonl(records: Iterable[ScoreRecord], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in records)


def _write_parquet(records: Iterable[ScoreRecord], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types = {name: pa.float64() if name == "score" else pa.string() for name in COLUMNS}
    schema = pa.schema(list(types.items()))
    with path.open("wb") as file, closing(parquet.ParquetWriter(file, schema)) as writer:
        remaining = iter(records)
        while rows := list(islice(remaining, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist([_flat(row) for row in rows], schema=schema))


def _flat(record: ScoreRecord) -> dict[str, Any]:
    """A row of plain cells: the parameters are one text, JSON with sorted keys."""
    return {**asdict(record), "params": json.dumps(record.params, sort_keys=True, ensure_ascii=False)}


_WRITERS: dict[str, Write] = {".csv": _write_csv, ".parquet": _write_parquet, ".jsonl": _write_jsonl}

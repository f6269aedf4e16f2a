"""Records, a store in memory and short ways to read a file, for the tests of the import."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from calibrate.ingest import Added, Record, Rejected, read
from calibrate.types import Label, Trace


class DictSink:
    """A store in memory, as `TraceSink` describes it."""

    def __init__(self) -> None:
        self.traces: dict[str, Trace] = {}
        self.labels: dict[tuple[str, str], Label] = {}
        self.batches: list[int] = []

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        self.batches.append(len(records))
        imported = duplicates = labels = 0
        conflicts = []
        for record in records:
            here = self.traces.setdefault(record.trace.id, record.trace)
            if here is record.trace:
                imported += 1
            elif here.content_hash() == record.trace.content_hash():
                duplicates += 1
            else:
                conflicts.append((record.line, record.trace.id))
                continue
            for label in record.labels if labels_as else ():
                labels += (record.trace.id, labels_as) not in self.labels
                self.labels[record.trace.id, labels_as] = label
        return Added(imported, duplicates, tuple(conflicts), labels)


def good(trace_id: str = "a", **fields: Any) -> dict[str, Any]:
    return {"trace_id": trace_id, "question": "Who?", "answer": "She did [1].", **fields}


def only(path: Path, **options: Any) -> Record:
    """The one record of a file that has no other line."""
    (found,) = read(path, **options)
    assert isinstance(found, Record), found
    return found


def reasons(path: Path, **options: Any) -> dict[int, str]:
    return {one.line: one.reason for one in read(path, **options) if isinstance(one, Rejected)}


def ids(path: Path, **options: Any) -> list[str]:
    return [one.trace.id for one in read(path, **options) if isinstance(one, Record)]

"""The data of the demo: traces of a made-up shop's assistant, and how its labellers read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from calibrate.errors import Unavailable
from calibrate.ingest import Record, read
from calibrate.ingest.labels import read_labels
from calibrate.types import Label

FOLDER = Path(__file__).resolve().parents[2] / "demo"
TRACES = FOLDER / "shop.jsonl"
READINGS = FOLDER / "readings.jsonl"
DAY = timedelta(days=1)

Readings = Mapping[tuple[str, str], Label]


def read_traces(now: datetime) -> Sequence[Record]:
    """The traces in order of time, moved by whole days so that the newest is from the last 24 hours."""
    records = [record for record in read(_present(TRACES)) if isinstance(record, Record)]
    by = (now - max(time_of(record) for record in records)) // DAY * DAY
    moved = [replace(record, trace=replace(record.trace, timestamp=time_of(record) + by)) for record in records]
    return sorted(moved, key=time_of)


def read_readings() -> Readings:
    """How each labeller reads each trace, by trace id and labeller."""
    labels = [each[1] for each in read_labels(_present(READINGS)) if isinstance(each, tuple)]
    return {(label.trace_id, label.labeller): label for label in labels}


def time_of(record: Record) -> datetime:
    """When a trace of the demo was logged: each of them says so."""
    assert record.trace.timestamp is not None
    return record.trace.timestamp


def _present(path: Path) -> Path:
    if not path.is_file():
        raise Unavailable(f"the data of the demo is not there: {path} is missing; install Touchstone again")
    return path

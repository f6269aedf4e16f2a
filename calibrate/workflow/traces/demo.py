"""Demo: fill an empty store with the shipped sample traces, as if they had been logged these weeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from calibrate.errors import BadInput, Unavailable
from calibrate.ingest import Added, ImportReport, Record, TraceSink, import_file, read
from calibrate.types import TraceFilter
from calibrate.workflow.traces.stated_samples import keep_stated
from db import Store

TRACES = Path(__file__).resolve().parents[2] / "demo" / "traces.jsonl"
LABELLER = "demo"
DAY = timedelta(days=1)


def fill(store: Store, now: datetime, *, path: Path = TRACES) -> ImportReport:
    """Imports the sample traces with their labels, moved by whole days so that the newest is from the last 24 hours.

    The labelled ones stand for a random sample, called "demo".
    Raises BadInput for a store that holds traces already: sample traces are not to mix with real ones.
    """
    if store.traces.count(TraceFilter(), limit=1):
        raise BadInput(
            f"the store {store.name} holds traces already; sample traces go into an empty store only: name another "
            "with --store, sqlite:///demo.db for instance"
        )
    if not path.is_file():
        raise Unavailable(f"the sample traces are not there: {path} is missing; install Touchstone again")
    shifted = _Shifted(store.traces, _round_to_days(path, now))
    report = import_file(shifted, path, labels_as=LABELLER, strict=True, now=now)
    if report.labels:
        ids = [record.trace.id for record in read(path) if isinstance(record, Record)]
        keep_stated(store, LABELLER, ids, design="random", now=now)
    return report


def _round_to_days(path: Path, now: datetime) -> timedelta:
    """Whole days, so that a night stays a night and a Monday's gap stays as long."""
    times = [record.trace.timestamp for record in read(path) if isinstance(record, Record) and record.trace.timestamp]
    return (now - max(times)) // DAY * DAY if times else timedelta()


@dataclass(frozen=True)
class _Shifted:
    """A sink that moves traces in time before they are kept."""

    sink: TraceSink
    by: timedelta

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        return self.sink.add([self._moved(record) for record in records], labels_as=labels_as, now=now, again=again)

    def _moved(self, record: Record) -> Record:
        timestamp = record.trace.timestamp
        if timestamp is None:
            return record
        return replace(record, trace=replace(record.trace, timestamp=timestamp + self.by))

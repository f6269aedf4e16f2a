"""Import a file's traces into a store, batch by batch."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import records
from calibrate.redaction import Redactor
from calibrate.types import Added, Record, TraceSink

MAX_ERRORS = 1000
MAX_SCORES = 8  # names of scores that are reported; a record may bring a hundred
MAX_FIELDS = 100
BATCH_BYTES = 8 * 1024 * 1024
"""A batch ends at this size even if it holds fewer records, so that long answers do not add up in memory."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or has done so far.

    `errors` holds the first thousand rejections; `rejected` counts them all. `repaired` counts characters that no
    database can store and that became U+FFFD; `left_out` counts, per field name, the records in which that field was
    not imported. `labels` counts the labels that are new in the store, `labels_left_out` those that were not taken, as
    nobody wanted them or their trace was rejected. `share` is the part of the file that was read, 0 to 1. `stopped`:
    `should_stop` ended the import; `cut`: the file is damaged and could not be read to its end. `redacted` counts, per
    kind, what was replaced by placeholders. `purged` counts the traces that were purged before and stayed out.
    `checked`: a strict import has looked at so many lines and imported nothing yet; `share` is the part of that.
    `read_with` names the files beside it that a part of the traces came from.
    """

    imported: int = 0
    duplicates: int = 0
    rejected: int = 0
    labels: int = 0
    errors: tuple[Rejected, ...] = ()
    repaired: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    share: float = 0.0
    stopped: bool = False
    cut: bool = False
    labels_left_out: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)
    purged: int = 0
    checked: int = 0
    read_with: tuple[str, ...] = ()


def import_file(
    store: TraceSink,
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    labels_as: str | None = None,
    strict: bool = False,
    redactor: Redactor | None = None,
    again: bool = False,
    batch_size: int = 1000,
    on_progress: Callable[[ImportReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    now: datetime | None = None,
) -> ImportReport:
    """Import the file into the store, one transaction per batch. Committed batches stay if a later one fails.

    `strict` reads the whole file first and raises `BadInput`, with nothing imported, if any line would be rejected.
    `redactor` replaces personal data and secrets before anything is stored. `again` takes in what was purged before.
    `on_progress` and `should_stop` are called after every batch, also while a strict import checks the file.
    """
    if strict:
        with InputFile(path) as file:
            rows = records(file, format=format, columns=columns, redactor=redactor)
            for checked in _refuse_rejections(rows, path, batch_size):
                if on_progress is not None:
                    on_progress(ImportReport(checked=checked, share=file.share))
                if should_stop is not None and should_stop():
                    return ImportReport(checked=checked, share=file.share, stopped=True)
    with InputFile(path) as file:
        report = import_records(
            store,
            records(file, format=format, columns=columns, redactor=redactor),
            labels_as=labels_as,
            again=again,
            batch_size=batch_size,
            share=lambda: file.share,
            on_progress=on_progress,
            should_stop=should_stop,
            now=now,
        )
        return replace(report, read_with=tuple(sorted(file.read_with)))


def import_records(
    store: TraceSink,
    rows: Iterator[Record | Rejected],
    *,
    labels_as: str | None = None,
    again: bool = False,
    batch_size: int = 1000,
    share: Callable[[], float] = lambda: 0.0,
    on_progress: Callable[[ImportReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    now: datetime | None = None,
) -> ImportReport:
    """Import records from wherever they come, one transaction per batch. `share` says how much of them has been read.

    The other parameters are those of `import_file`.
    """
    tally = _Tally()
    moment = now or datetime.now(UTC)
    for batch in _split_into_batches(rows, batch_size, tally):
        if batch:
            added = store.add(batch, labels_as=labels_as, now=moment, again=again)
            tally.add(added, batch, labels_wanted=labels_as is not None)
        if on_progress is not None:
            on_progress(tally.report(share=share()))
        if should_stop is not None and should_stop():
            return tally.report(share=share(), stopped=True)
    return tally.report(share=1.0)


def add_reports(reports: Iterable[ImportReport]) -> ImportReport:
    """Add up what several imports did. `share` is the last one's."""
    listed = list(reports)
    left_out: Counter[str] = Counter()
    redacted: Counter[str] = Counter()
    for report in listed:
        left_out.update(report.left_out)
        redacted.update(report.redacted)
    errors = tuple(islice((error for report in listed for error in report.errors), MAX_ERRORS))
    numbers = ("imported", "duplicates", "rejected", "labels", "repaired", "labels_left_out", "purged", "checked")
    return ImportReport(
        **{name: sum(getattr(report, name) for report in listed) for name in numbers},
        errors=errors,
        left_out=left_out,
        redacted=redacted,
        share=listed[-1].share if listed else 0.0,
        stopped=any(report.stopped for report in listed),
        cut=any(report.cut for report in listed),
        read_with=tuple(sorted({name for report in listed for name in report.read_with})),
    )


class _Tally:
    """Counts for an `ImportReport`."""

    def __init__(self) -> None:
        self.imported = self.duplicates = self.labels = self.rejected = self.repaired = self.labels_left_out = 0
        self.purged = 0
        self.errors: list[Rejected] = []
        self.left_out: Counter[str] = Counter()
        self.redacted: Counter[str] = Counter()
        self.cut = False

    def reject(self, rejection: Rejected) -> None:
        self.rejected += 1
        self.cut |= rejection.last
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(rejection)

    def add(self, added: Added, batch: Sequence[Record], *, labels_wanted: bool) -> None:
        refused = {*added.conflicts, *added.purged}  # one line may hold several traces
        self.labels_left_out += sum(
            len(record.labels) for record in batch if not labels_wanted or (record.line, record.trace.id) in refused
        )
        self.imported += added.imported
        self.duplicates += added.duplicates
        self.purged += len(added.purged)
        self.labels += added.labels
        for line, trace_id in added.conflicts:
            self.reject(Rejected(line, _conflict(trace_id)))

    def note(self, record: Record) -> None:
        self.repaired += record.repaired
        self.redacted.update(record.redacted)
        for name in map(self._group, record.left_out):
            if name in self.left_out or len(self.left_out) < MAX_FIELDS:
                self.left_out[name] += 1

    def _group(self, name: str) -> str:
        """The name under which a field is counted that was not imported."""
        if not name.startswith("scores.") or name in self.left_out:
            return name
        named = sum(other.startswith("scores.") for other in self.left_out)
        return name if named < MAX_SCORES else "scores (under other names)"

    def report(self, *, share: float, stopped: bool = False) -> ImportReport:
        return ImportReport(
            imported=self.imported,
            duplicates=self.duplicates,
            rejected=self.rejected,
            labels=self.labels,
            errors=tuple(sorted(self.errors, key=lambda rejection: rejection.line)),
            repaired=self.repaired,
            left_out=dict(self.left_out),
            share=share,
            stopped=stopped,
            cut=self.cut,
            labels_left_out=self.labels_left_out,
            redacted=dict(self.redacted),
            purged=self.purged,
        )


def _split_into_batches(rows: Iterator[Record | Rejected], batch_size: int, tally: _Tally) -> Iterator[list[Record]]:
    """Split into batches of records. A run of rejections yields empty batches, so that progress shows."""
    batch: list[Record] = []
    size = since = 0
    for row in rows:
        since += 1
        if isinstance(row, Rejected):
            tally.reject(row)
        else:
            tally.note(row)
            batch.append(row)
            size += row.size
        if since >= batch_size or size >= BATCH_BYTES:
            yield batch
            batch, size, since = [], 0, 0
    if since:
        yield batch


def _refuse_rejections(
    rows: Iterator[Record | Rejected], path: str | os.PathLike[str], batch_size: int
) -> Iterator[int]:
    """Raise `BadInput` that lists the first lines with errors, including ids with two contents. Yields now and then how
    many lines were looked at."""
    tally = _Tally()
    # An unnamed SQLite database is a temporary file: the ids of ten million traces take no memory.
    with closing(sqlite3.connect("")) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, content TEXT, line INTEGER) WITHOUT ROWID")
        for checked, record in enumerate(rows, 1):
            if checked % batch_size == 0:
                yield checked
            if isinstance(record, Rejected):
                tally.reject(record)
                continue
            content = record.trace.content_hash()
            row = (record.trace.id, content, record.line)
            if database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", row).rowcount:
                continue
            first = database.execute("SELECT content, line FROM seen WHERE id = ?", row[:1]).fetchone()
            if first[0] != content:
                tally.reject(
                    Rejected(record.line, f"trace id {record.trace.id!r} has other content in line {first[1]}")
                )
    if tally.rejected:
        listed = "\n".join(f"  line {record.line}: {record.reason}" for record in tally.errors[:10])
        more = f"\n  and {tally.rejected - 10} more" if tally.rejected > 10 else ""
        lines = "1 line" if tally.rejected == 1 else f"{tally.rejected} lines"
        raise BadInput(f"nothing was imported: {lines} of {path} cannot be taken\n{listed}{more}")


def _conflict(trace_id: str) -> str:
    """Explain why a record is rejected whose trace id exists with other content."""
    return (
        f"trace id {trace_id!r} is already in the store with other content; the first is kept; give this one its own id"
    )

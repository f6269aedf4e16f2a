"""Import the answers that programs have logged straight into the store (`calibrate.runtime.TraceLog`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest import Rejected, import_records
from calibrate.ingest.base import Row
from calibrate.ingest.files import MAX_LINE_BYTES
from calibrate.ingest.importing import BATCH_BYTES, MAX_ERRORS
from calibrate.ingest.record import build
from calibrate.ingest.values import FieldError, decode_json, expected, repair
from calibrate.redaction import Redactor, redactor_of
from calibrate.sanitize import one_line
from calibrate.settings import ImportSettings
from calibrate.types import Record
from calibrate.workflow.traces.scored_traces import ScoredTraces
from db import Store
from db.exchange.logged import LoggedLine

BATCH = 500  # answers imported in one transaction: fewer than the errors that a report lists
MOST_NOTED = 20  # rejections that the audit log names
LONGEST_NOTED = 300
LONGEST_ID = 100
FORMAT = "jsonl"
"""What begins the id of an answer that has none: it is the one that a file of the same lines gives."""


@dataclass
class TakenLogged:
    """What became of the answers that waited. `errors` holds the first thousand rejections, by their number in the
    table; `labels_left_out` counts labels: a program gives none."""

    imported: int = 0
    duplicates: int = 0
    rejected: int = 0
    purged: int = 0
    labels_left_out: int = 0
    redacted: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    errors: list[Rejected] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.imported + self.duplicates + self.rejected + self.purged


def take_logged(
    store: Store,
    *,
    redact: str | None = None,
    again: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    now: datetime,
) -> TakenLogged:
    """Import what waits, a batch at a time, and remove it: what was there when this began, and what comes meanwhile.

    An answer is removed after it is in the store; one that a kill leaves in both is a duplicate the next time. Several
    processes may do this at once. `redact` and `again` are those of an import. What is rejected is removed too, with
    an entry in the audit log that says of the first twenty which trace it was: the others would wait behind it.
    """
    taken, total = TakenLogged(), store.logged.count()
    redactor = redactor_of(settings.imports().redact if redact is None else redact)
    limits = settings.imports()
    sink = ScoredTraces(store, now=now)
    while total and not should_stop():
        lines = store.logged.read(BATCH, size=BATCH_BYTES, longest=MAX_LINE_BYTES)
        if not lines:
            break
        records = (_record_of(line, limits, redactor) for line in lines)
        _add(taken, sink, records, again=again, now=now)
        store.logged.settle([line.id for line in lines])
        on_progress(taken.total, max(total, taken.total))
    if taken.rejected:
        reasons = [one_line(error.reason, LONGEST_NOTED) for error in taken.errors[:MOST_NOTED]]
        after = {"rejected": taken.rejected, "why": reasons[0], "each": reasons}
        store.audit.note("logged answers rejected", "logged", now=now, after=after)
    return taken


def _add(
    taken: TakenLogged, sink: ScoredTraces, records: Iterator[Record | Rejected], *, again: bool, now: datetime
) -> None:
    report = import_records(sink, records, again=again, batch_size=BATCH, now=now)
    taken.imported += report.imported
    taken.duplicates += report.duplicates
    taken.rejected += report.rejected
    taken.purged += report.purged
    taken.labels_left_out += report.labels_left_out
    taken.redacted.update(report.redacted)
    taken.left_out.update(report.left_out)
    taken.errors += report.errors[: MAX_ERRORS - len(taken.errors)]


def _record_of(line: LoggedLine, limits: ImportSettings, redactor: Redactor | None) -> Record | Rejected:
    """The record of a line, or why there is none, with the id that the program gave it: the row will be gone."""
    row = _row_of(line)
    if isinstance(row, Rejected):
        return row
    record = build(row, format_name=FORMAT, limits=limits, redactor=redactor)
    given = row.fields.get("trace_id") or row.fields.get("id")
    if isinstance(record, Record) or not isinstance(given, (str, int)):
        return record
    name = str(given) if redactor is None else redactor.redact_text(str(given))
    return replace(record, reason=f"trace {one_line(name, LONGEST_ID)!r}: {record.reason}")


def _row_of(line: LoggedLine) -> Row | Rejected:
    if line.text is None:
        megabytes = MAX_LINE_BYTES // 1024**2
        return Rejected(line.id, str(BadInput(f"the record is longer than {megabytes} MB")))
    try:
        value = decode_json(line.text)
        if not isinstance(value, dict):
            raise expected("the record", "an object with an answer", value)
        value, characters = repair(value)
    except FieldError as error:
        return Rejected(line.id, str(error))
    except RecursionError:
        return Rejected(line.id, str(FieldError("not usable JSON: it is nested too deeply")))
    return Row(line.id, value, len(line.text), characters)

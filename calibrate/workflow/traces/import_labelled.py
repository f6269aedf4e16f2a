"""Import a file's traces with their labels, and keep these as a sample where it is stated how they were chosen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from calibrate import settings
from calibrate.ingest import ImportReport, Rejected, import_file, import_records
from calibrate.ingest.base import Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of
from calibrate.ingest.inspection.profile import NOTHING, Profile, Profiler
from calibrate.ingest.record import build
from calibrate.redaction import Redactor, redactor_of
from calibrate.types import Added, Record, Sample
from calibrate.workflow.traces.external_scores import Intakes, TakenScores
from calibrate.workflow.traces.membership import NO_LABELS, Membership, membership
from calibrate.workflow.traces.scored_traces import scores_that_came
from calibrate.workflow.traces.stated_samples import keep_stated
from db import Store


class Imported(NamedTuple):
    """What an import did: its `report`; the `sample` that its labels became, where it was stated how their traces were
    chosen; else which samples these are in; what became of the `scores` that came along, by detector, and why those of
    the `refused` names were left out. `format` names what was read, and `profile` counts the fields of the traces that
    are in the store now, new or not."""

    report: ImportReport
    sample: Sample | None
    membership: Membership
    scores: tuple[TakenScores, ...] = ()
    refused: Mapping[str, str] = {}
    format: str = ""
    profile: Profile = NOTHING


def import_traces(
    store: Store,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    labels_as: str | None = None,
    keep_labels: bool = True,
    design: str | None = None,
    by: str = "",
    strict: bool = False,
    redact: str | None = None,
    again: bool = False,
    on_progress: Callable[[ImportReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    now: datetime,
) -> Imported:
    """Import a file. Its labels are kept as those of the labeller `labels_as`, by default the file's name.

    `name` is what the user calls the file, where that is not the path's. `design` states how the labelled traces were
    chosen, `by` whom: they become a sample of it.
    `redact` names what is replaced before anything is stored; None for what TOUCHSTONE_REDACT says. Traces that were
    purged stay out, unless they are to come in `again`.
    """
    file = name or Path(path).name
    with InputFile(path) as opened:
        format = format_of(opened, format).name
    sink = _Noting(store, file, format)
    report = import_file(
        sink,
        path,
        format=format,
        columns=columns,
        labels_as=(labels_as or labeller_of(file)) if keep_labels else None,
        strict=strict,
        redactor=_redactor(redact),
        again=again,
        on_progress=on_progress,
        should_stop=should_stop,
        now=now,
    )
    return _finish(store, sink, report, design=design if keep_labels else None, by=by, now=now)


def import_rows(
    store: Store,
    name: str,
    rows: Iterator[Row | Rejected],
    *,
    format: str,
    labels_as: str | None = None,
    keep_labels: bool = True,
    design: str | None = None,
    by: str = "",
    redact: str | None = None,
    again: bool = False,
    now: datetime,
) -> Imported:
    """Import rows that come from elsewhere than a file, with the same checks. `name` is what people call the source,
    and `format` begins the ids of traces that come without one. The rest is as `import_traces` has it.
    """
    sink, redactor, limits = _Noting(store, name, format), _redactor(redact), settings.imports()
    checked = (
        row if isinstance(row, Rejected) else build(row, format_name=format, limits=limits, redactor=redactor)
        for row in rows
    )
    labeller = (labels_as or labeller_of(name)) if keep_labels else None
    report = import_records(sink, checked, labels_as=labeller, again=again, now=now)
    return _finish(store, sink, report, design=design if keep_labels else None, by=by, now=now)


def _redactor(redact: str | None) -> Redactor | None:
    return redactor_of(settings.imports().redact if redact is None else redact)


def _finish(
    store: Store, sink: _Noting, report: ImportReport, *, design: str | None, by: str, now: datetime
) -> Imported:
    """Note in the audit log what came, and say what the labels are: a sample, or members of some."""
    of_scores = (sink.scores.taken, sink.scores.refused) if sink.scores else ((), {})
    profile = sink.profiler.profile()
    if report.imported or report.labels:
        after = {"traces": report.imported, "labels": report.labels}
        store.audit.note("traces imported", sink.file, now=now, after=after)
    if not sink.labelled or report.stopped:  # a part of the labels would be another sample
        return Imported(report, None, NO_LABELS, *of_scores, sink.format, profile)
    if design is None:
        return Imported(report, None, membership(store, sink.labelled), *of_scores, sink.format, profile)
    sample = keep_stated(store, sample_name_of(sink.file), sink.labelled, design=design, by=by, now=now)
    return Imported(report, sample, NO_LABELS, *of_scores, sink.format, profile)


def labeller_of(file: str) -> str:
    """The labeller of labels that name none: the file's name."""
    return file[:100]


def sample_name_of(file: str) -> str:
    """What the sample of a file's labels is called: the file's name without what it ends with."""
    return Path(file).name.split(".")[0] or file


@dataclass
class _Noting:
    """A sink that notes what the traces hold and which came with labels; in the audit log, that an import began. It
    takes the scores that come along."""

    store: Store
    file: str
    format: str
    labelled: set[str] = field(default_factory=set)
    profiler: Profiler = field(default_factory=Profiler)
    scores: Intakes | None = None
    _begun: bool = False

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        if not self._begun:  # before the first trace: an import that is killed leaves this entry alone
            self.store.audit.note("import begun", self.file, now=now)
            self._begun = True
        added = self.store.traces.add(records, labels_as=labels_as, now=now, again=again)
        refused = {*added.conflicts, *added.purged}  # one line may hold several traces
        for record in records:
            if not refused or (record.line, record.trace.id) not in refused:
                self.profiler.add(record)
                if record.labels and labels_as is not None:
                    self.labelled.add(record.trace.id)
        if any(record.scores for record in records):
            self.scores = self.scores or Intakes(self.store, now=now)
            self.scores.add(scores_that_came(records, added))
        return added

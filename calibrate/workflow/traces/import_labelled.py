"""Import a file's traces with their labels, and keep these as a sample where it is stated how they were chosen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from calibrate import settings
from calibrate.ingest import ImportReport, import_file
from calibrate.redaction import redactor_of
from calibrate.types import Added, Record, Sample
from calibrate.workflow.traces.membership import NO_LABELS, Membership, membership
from calibrate.workflow.traces.stated_samples import keep_stated
from db import Store


class Imported(NamedTuple):
    """What an import did: its `report`; the `sample` that its labels became, where it was stated how their traces were
    chosen; else which samples these are in."""

    report: ImportReport
    sample: Sample | None
    membership: Membership


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
    redactor = redactor_of(settings.imports().redact if redact is None else redact)
    file = name or Path(path).name
    sink = _Noting(store, file)
    report = import_file(
        sink,
        path,
        format=format,
        columns=columns,
        labels_as=(labels_as or labeller_of(file)) if keep_labels else None,
        strict=strict,
        redactor=redactor,
        again=again,
        on_progress=on_progress,
        should_stop=should_stop,
        now=now,
    )
    if report.imported or report.labels:
        after = {"traces": report.imported, "labels": report.labels}
        store.audit.note("traces imported", file, now=now, after=after)
    if not keep_labels or not sink.labelled or report.stopped:  # a part of the labels would be another sample
        return Imported(report, None, NO_LABELS)
    if design is None:
        return Imported(report, None, membership(store, sink.labelled))
    sample = keep_stated(store, sample_name_of(file), sink.labelled, design=design, by=by, now=now)
    return Imported(report, sample, NO_LABELS)


def labeller_of(file: str) -> str:
    """The labeller of labels that name none: the file's name."""
    return file[:100]


def sample_name_of(file: str) -> str:
    """What the sample of a file's labels is called: the file's name without what it ends with."""
    return Path(file).name.split(".")[0] or file


@dataclass
class _Noting:
    """A sink that notes which of the traces it took came with labels, and in the audit log that an import began."""

    store: Store
    file: str
    labelled: set[str] = field(default_factory=set)
    _begun: bool = False

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        if not self._begun:  # before the first trace: an import that is killed leaves this entry alone
            self.store.audit.note("import begun", self.file, now=now)
            self._begun = True
        added = self.store.traces.add(records, labels_as=labels_as, now=now, again=again)
        refused = {line for line, _ in (*added.conflicts, *added.purged)}
        self.labelled.update(record.trace.id for record in records if record.labels and record.line not in refused)
        return added

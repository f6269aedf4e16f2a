"""A running import. It has a thread of its own, so that a rerun of the page neither stops nor repeats it."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakValueDictionary

from calibrate.errors import TouchstoneError
from calibrate.ingest import ImportReport
from calibrate.report.progress import Rate
from calibrate.types import Sample
from calibrate.workflow.traces.external_scores import TakenScores
from calibrate.workflow.traces.import_labelled import Imported, import_traces
from calibrate.workflow.traces.membership import NO_LABELS, Membership
from db import Store
from db.audit import acting_as, actor

log = logging.getLogger("touchstone")
_newest: WeakValueDictionary[tuple[str, str], ImportJob] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file to import. `keep` holds its temporary folder as long as it is needed."""

    name: str
    path: Path
    format: str = "auto"
    columns: Mapping[str, str] | None = None
    keep: tempfile.TemporaryDirectory[str] | None = None


@dataclass
class FileState:
    file: ImportFile
    size: int
    report: ImportReport = field(default_factory=ImportReport)
    problem: str | None = None
    sample: Sample | None = None
    membership: Membership = NO_LABELS
    scores: Sequence[TakenScores] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    done: Imported | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """What to do with the labels in the files: keep them, as whose (None: each file's name), and how their traces were
    chosen, where somebody (`by`) says so."""

    keep: bool = True
    labeller: str | None = None
    design: str | None = None
    by: str = ""


class ImportJob:
    """Imports files one after the other; `files` tells how far each is."""

    def __init__(self, store: Store, files: Sequence[ImportFile], *, labels: Labels, strict: bool) -> None:
        self.files = [FileState(file, _size(file.path)) for file in files]
        self.seconds = 0.0
        self._store, self._labels, self._strict = store, labels, strict
        self._stop = threading.Event()
        self._began, self._rate = time.monotonic(), Rate()
        self._actor = actor()  # whoever has pressed the button; the thread has no session
        _newest[store.url, self._actor.name if self._actor else ""] = self
        self._thread = threading.Thread(target=self._run, name="import", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set() and any(state.report.share < 1 and state.problem is None for state in self.files)

    @property
    def share(self) -> float:
        """How much of all files was read, 0 to 1."""
        total = sum(state.size for state in self.files) or 1
        return min(
            1.0, sum(state.size * (1.0 if state.problem else state.report.share) for state in self.files) / total
        )

    @property
    def checked(self) -> int:
        """How many lines were looked at, while a file is that is taken whole or not at all."""
        return sum(state.report.checked for state in self.files if state.problem is None)

    @property
    def done(self) -> int:
        """How many traces were read, or lines looked at."""
        return self.checked or sum(map(self.total, ("imported", "duplicates", "rejected", "purged")))

    @property
    def rate(self) -> float | None:
        return self._rate.per_second(time.monotonic())

    def total(self, figure: str) -> int:
        """The sum over all files of one figure of their reports: imported, duplicates, labels and so on."""
        return sum(getattr(state.report, figure) for state in self.files)

    def go_on(self) -> ImportJob:
        """Import the same files again: what is in the store is skipped."""
        files = [state.file for state in self.files]
        return ImportJob(self._store, files, labels=self._labels, strict=self._strict)

    def stop(self) -> None:
        """Stop after the current batch; what was imported stays."""
        self._stop.set()

    def _run(self) -> None:
        with acting_as(self._actor):
            for state in self.files:
                if not self._stop.is_set():
                    self._import(state)
        self.seconds = time.monotonic() - self._began

    def _import(self, state: FileState) -> None:
        def keep(report: ImportReport) -> None:
            state.report = report
            self._rate.read(self.done, time.monotonic())

        try:
            done = import_traces(
                self._store,
                state.file.path,
                name=state.file.name,
                format=state.file.format,
                columns=state.file.columns,
                labels_as=self._labels.labeller,
                keep_labels=self._labels.keep,
                design=self._labels.design,
                by=self._labels.by,
                strict=self._strict,
                on_progress=keep,
                should_stop=self._stop.is_set,
                now=datetime.now(UTC),
            )
            state.report, state.sample, state.membership = done.report, done.sample, done.membership
            state.scores, state.refused = done.scores, done.refused
            state.done = done
        except TouchstoneError as error:
            state.problem = str(error).replace(str(state.file.path), state.file.name)
        except Exception as error:
            log.exception("an import failed")
            state.problem = f"Something went wrong ({type(error).__name__}). The log of the server has the details."


def running_of(store: Store, person: str) -> ImportJob | None:
    """The import that this person began and that still runs, in this session or in one whose tab was closed."""
    job = _newest.get((store.url, person))
    return job if job is not None and job.running else None


def _size(path: Path) -> int:
    try:
        return max(1, path.stat().st_size)
    except OSError:
        return 1

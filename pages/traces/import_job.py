"""An import under way. It runs in a thread of its own, so that a rerun of the page neither stops nor repeats it."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.errors import TouchstoneError
from calibrate.ingest import ImportReport, TraceSink, import_file

log = logging.getLogger("touchstone")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to import, and how. `keep` holds a temporary folder alive as long as its file is needed."""

    name: str
    path: Path
    format: str = "auto"
    columns: Mapping[str, str] | None = None
    keep: tempfile.TemporaryDirectory[str] | None = None


@dataclass
class FileState:
    wanted: Wanted
    size: int
    report: ImportReport = field(default_factory=ImportReport)
    problem: str | None = None


class ImportJob:
    """Imports files one after the other; `files` tells how far each is."""

    def __init__(self, sink: TraceSink, wanted: Sequence[Wanted], *, labels_as: str | None, strict: bool) -> None:
        self.files = [FileState(one, _size(one.path)) for one in wanted]
        self.seconds = 0.0
        self._sink, self._labels_as, self._strict = sink, labels_as, strict
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="import", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set() and any(one.report.share < 1 and one.problem is None for one in self.files)

    @property
    def share(self) -> float:
        """How much of all files was read, 0 to 1."""
        total = sum(one.size for one in self.files) or 1
        return min(1.0, sum(one.size * (1.0 if one.problem else one.report.share) for one in self.files) / total)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began if self.running else self.seconds

    def total(self, what: str) -> int:
        """Over all files: imported, duplicates, rejected, labels or repaired."""
        return sum(getattr(one.report, what) for one in self.files)

    def stop(self) -> None:
        """Ends after the batch at hand; what was imported stays."""
        self._stop.set()

    def _run(self) -> None:
        for one in self.files:
            if not self._stop.is_set():
                self._import(one)
        self.seconds = time.monotonic() - self._began

    def _import(self, one: FileState) -> None:
        def keep(report: ImportReport) -> None:
            one.report = report

        try:
            one.report = import_file(
                self._sink,
                one.wanted.path,
                format=one.wanted.format,
                columns=one.wanted.columns,
                labels_as=self._labels_as,
                strict=self._strict,
                on_progress=keep,
                should_stop=self._stop.is_set,
            )
        except TouchstoneError as error:
            one.problem = str(error).replace(str(one.wanted.path), one.wanted.name)
        except Exception as error:
            log.exception("an import failed")
            one.problem = f"Something went wrong ({type(error).__name__}). The log of the server has the details."


def _size(path: Path) -> int:
    try:
        return max(1, path.stat().st_size)
    except OSError:
        return 1

"""Purge: take the texts of traces out of the store, its files, and what this machine keeps beside it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from calibrate.backends.chat.guided import cut_cases
from calibrate.backends.embedding import vectors
from calibrate.engines.background import log_path
from calibrate.errors import BadInput
from calibrate.types import Chosen, PurgeCounts
from db import Store
from db.upkeep.compact import compact

UPLOADS = "touchstone-upload-*"  # pages.traces.import_form writes uploads to such folders
ABANDONED = timedelta(days=1)
RUNS = ("queued", "running")


@dataclass(frozen=True)
class Purged:
    """What was removed. `logs` are files of runs and `uploads` folders that a killed workbench left, both on this
    machine; `vectors` is whether embeddings were kept here. `compacted`: no byte is left in the store's files; None
    where nothing had to be written anew. `releases` quote what was purged in a note or a reason, and stay as they
    are. `prompts` are files in use that quoted it and have another version now."""

    counts: PurgeCounts
    logs: int = 0
    uploads: int = 0
    vectors: bool = False
    compacted: bool | None = None
    releases: tuple[int, ...] = ()
    prompts: tuple[str, ...] = ()


def choose(
    store: Store,
    *,
    before: datetime | None = None,
    trace_ids: Sequence[str] = (),
    where: Sequence[tuple[str, str]] = (),
) -> Chosen:
    """Say which traces are meant. Raises BadInput where nothing is said, too much, or a trace is not in the store."""
    if not (before or trace_ids or where):
        raise BadInput("say which traces: --before DATE, --older-than 90d, --trace ID or --where attribute=value")
    if trace_ids and (before or where):
        raise BadInput("--trace names the traces one by one: leave --before, --older-than and --where out")
    for trace_id in trace_ids:
        if store.traces.find(trace_id) is None:
            raise BadInput(f"the store has no trace {trace_id!r}: `traces` lists them")
    return Chosen(before, tuple(dict.fromkeys(trace_ids)), tuple(where))


def purge(store: Store, chosen: Chosen, *, by: str, now: datetime) -> Purged:
    """Remove the texts of the chosen traces from the tables, then from the bytes of the files and this machine.

    Hashes, verdicts, values of scores, figures and membership of samples stay. A purge that was killed is finished by
    the next one.
    """
    before = store.files.current()
    counts, releases = store.purges.remove(chosen, by=by, now=now, cut_cases=cut_cases)
    after = store.files.current()
    prompts = tuple(name for name in before if before[name] != after.get(name))
    if not store.purges.waiting():
        return Purged(counts)
    kept_vectors = vectors.forget()
    logs, uploads = _remove_logs(store), _remove_uploads()
    compacted = compact(store.engine)
    if compacted:
        store.purges.compacted(now=now)
        compacted = compact_log(store)
    return Purged(counts, logs, uploads, kept_vectors, compacted, releases, prompts)


def compact_log(store: Store) -> bool:
    """Empty the write-ahead log of an SQLite store once more: the note that it was compacted went through it."""
    return store.engine.dialect.name != "sqlite" or compact(store.engine, rewrite=False)


def _remove_logs(store: Store) -> int:
    """Logs of runs that have ended: they quote what a detector or an endpoint said."""
    going = {run.id for run in store.runs.recent(limit=1000) if run.status in RUNS}
    sample = log_path(store.url, 0)
    removed = 0
    for path in sample.parent.glob(sample.name.replace("-0.log", "-*.log")):
        number = path.stem.rpartition("-")[2]
        if number.isdigit() and int(number) not in going:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _remove_uploads() -> int:
    """Uploads whose workbench was killed: nobody has touched their folder for a day."""
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(UPLOADS):
        try:
            if folder.is_dir() and time.time() - folder.stat().st_mtime > ABANDONED.total_seconds():
                shutil.rmtree(folder)
                removed += 1
        except OSError:  # another user's
            continue
    return removed

"""A whole store into an archive, and out of it into another."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import db
from calibrate import __version__
from calibrate.errors import BadInput
from calibrate.workflow.upkeep import archive
from db.engine import HEAD
from db.upkeep.backup import folder_of
from db.upkeep.older import migrated, refuse_unless_same
from db.upkeep.rows import Rows, Shape, filling, shapes, snapshot
from db.upkeep.schemas import known_schemas
from db.upkeep.staging import new_file

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Moved:
    """What went into an archive or came out of it: rows by table, and the SHA-256 of each table's file."""

    schema: str
    rows: Mapping[str, int]
    sha256: Mapping[str, str]


def export_all(store: db.Store, path: Path, *, now: datetime, on_progress: Progress = lambda *_: None) -> Moved:
    """Write every row of the store, as it is at one moment, to a new archive. Raises BadInput or StoreError."""
    with new_file(path) as temporary, snapshot(store.engine) as source:
        total, done = sum(source.count(shape) for shape in shapes()), 0

        def on_rows(rows: int) -> None:
            nonlocal done
            done += rows
            on_progress(done, total)

        tables = ((shape, source.rows(shape)) for shape in shapes())
        manifest = archive.write(
            temporary, tables, schema=HEAD, written_by=f"touchstone {__version__}", now=now, on_rows=on_rows
        )
    return _moved(manifest)


def import_all(url: str, path: Path, *, on_progress: Progress = lambda *_: None) -> Moved:
    """Fill an empty store, or one that does not exist yet, with every row of an archive.

    The archive is verified to its last byte before the store is touched, and all rows come in one transaction: after
    any error, or a kill, the store is as empty as before. Raises BadInput or StoreError.
    """
    folder = folder_of(url)
    with archive.reading(path) as source:
        manifest = source.manifest
        if manifest.schema not in known_schemas():
            raise BadInput(
                f"the archive {path} is of a newer Touchstone (schema {manifest.schema}, this one knows {HEAD}): "
                "upgrade this one"
            )
        free = shutil.disk_usage(folder).free if folder is not None and folder.is_dir() else None
        if free is not None and source.unpacked > free:
            raise BadInput(
                f"the archive {path} unpacks to {source.unpacked:,} bytes, and {folder} has {free:,} left: free some"
            )
        tables = {member.shape.name: member.shape for member in manifest.tables}
        if manifest.schema == HEAD:
            refuse_unless_same(list(tables.values()), shapes(), HEAD)
            total = sum(member.rows for member in manifest.tables)
            _fill(url, [tables[shape.name] for shape in shapes()], source.rows, on_progress, total)
        else:
            rows = migrated(manifest.schema, list(tables.values()), source.rows, folder)
            with rows as older, snapshot(older) as current:
                _fill(url, shapes(), current.rows, on_progress, sum(map(current.count, shapes())))
    return _moved(manifest)


def _fill(
    url: str, tables: Sequence[Shape], rows_of: Callable[[Shape], Iterator[Rows]], on_progress: Progress, total: int
) -> None:
    store = db.open_store(url, create=True)
    done = 0
    try:
        with filling(store.engine) as target:
            for shape in tables:
                for rows in rows_of(shape):
                    target.insert(shape, rows)
                    done += len(rows)
                    on_progress(done, total)
    finally:
        store.close()


def _moved(manifest: archive.Manifest) -> Moved:
    rows = {member.shape.name: member.rows for member in manifest.tables}
    return Moved(manifest.schema, rows, {member.shape.name: member.sha256 for member in manifest.tables})

"""`export --all`: write the whole store to one archive."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, unwritten
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.report.sentences.traces.upkeep import holds
from calibrate.targets import Kind, check_target
from calibrate.workflow.upkeep.moving import export_all

ARCHIVE = Kind("an archive of a store", lambda head: head.startswith(b"PK"))


@dataclass(frozen=True, slots=True)
class ArchiveDocument:
    """`tables_sha256` are the digests of the tables' files: two stores with the same rows have the same."""

    path: str
    schema: str
    rows: Mapping[str, int]
    tables_sha256: Mapping[str, str]


def run(args: Namespace) -> Answer:
    if not args.everything:
        raise BadInput("`export` writes the whole store: add --all; `labels export` and `scores export` write a part")
    with closing(open_store(args)) as store, progress(args, "exporting", "row") as advance:
        check_target(args.file, ARCHIVE, store=store.file)
        with when_stopped(unwritten(args.file)):
            moved = export_all(store, Path(args.file), now=now(), on_progress=advance)
    document = ArchiveDocument(args.file, moved.schema, moved.rows, moved.sha256)
    return Answer(document, f"{args.file} holds all of {store.name}: {holds(moved.rows)}")

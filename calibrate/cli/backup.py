"""`backup`: copy the store to a new file while it is in use."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import unwritten
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.report.sentences.traces.upkeep import holds
from calibrate.urls import redact
from db.upkeep.backup import back_up


@dataclass(frozen=True, slots=True)
class BackupDocument:
    path: str
    schema: str
    bytes: int
    rows: Mapping[str, int]


def run(args: Namespace) -> Answer:
    url = args.store or settings.read().store
    with when_stopped(unwritten(args.file)), progress(args, "copying", "page") as advance:
        copy = back_up(url, Path(args.file), on_progress=advance)
    document = BackupDocument(args.file, copy.schema, copy.size, copy.rows)
    return Answer(document, f"{args.file} is a whole copy of {redact(url)}: {holds(copy.rows)}")

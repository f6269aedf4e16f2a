"""`audit`: who did what to this store, the newest first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.tables.audit import COLUMNS
from calibrate.report.tables.column import cells
from db.audit import Entry


@dataclass(frozen=True, slots=True)
class AuditDocument:
    entries: Sequence[Entry]


def run(args: Namespace) -> Answer:
    if args.limit < 1:
        raise BadInput(f"--limit {args.limit} shows nothing: give a number from 1")
    entries = open_store(args).audit.entries(who=args.who, verb=args.did, limit=args.limit)
    text = table(cells(COLUMNS, entries)) if entries else "nothing of the kind is in the log"
    return Answer(AuditDocument(entries), text)

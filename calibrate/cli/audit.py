"""`audit`: who did what to this store, the newest first."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences import audit as sentences
from calibrate.sanitize import one_line
from db.audit import Entry


@dataclass(frozen=True, slots=True)
class AuditDocument:
    entries: Sequence[Entry]


def run(args: Namespace) -> Answer:
    if args.limit < 1:
        raise BadInput(f"--limit {args.limit} shows nothing: give a number from 1")
    entries = open_store(args).audit.entries(who=args.who, verb=args.did, limit=args.limit)
    rows = [("when (UTC)", "who", "known by", "did", "to", "change"), *map(_row, entries)]
    return Answer(AuditDocument(entries), table(rows) if entries else "nothing of the kind is in the log")


def _row(entry: Entry) -> tuple[str, ...]:
    change = sentences.change(entry.before, entry.after)
    who, what = one_line(entry.who, 40), one_line(entry.what, 60)
    return numbers.stamp(entry.at), who, sentences.HOW[entry.how], entry.verb, what, one_line(change, 200)

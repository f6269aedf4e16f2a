"""`guidelines`: what the team tells its labellers, and the kinds of error, in numbered versions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.tables.column import cells
from calibrate.report.tables.guides import COLUMNS, head
from calibrate.types import Guide
from calibrate.workflow.labelling import guide_file, guides


@dataclass(frozen=True, slots=True)
class GuideDocument:
    """A version of the guide; `saved` says whether this call saved it."""

    guide: Guide
    saved: bool


@dataclass(frozen=True, slots=True)
class HistoryDocument:
    versions: Sequence[GuideLine]


@dataclass(frozen=True, slots=True)
class GuideLine:
    version: int
    kinds: Sequence[str]
    saved_by: str | None
    saved_at: datetime | None
    why: str | None


def run(args: Namespace) -> Answer:
    if (args.action == "set") != (args.file is not None):
        raise BadInput("set takes a file, like `guidelines set guide.toml`; nothing else does")
    if args.why is not None and args.action != "set":
        raise BadInput("--why is for set: it says what led to a new version")
    if args.at is not None and args.action != "show":
        raise BadInput("--at is for show: it names the version to show")
    return {"show": _show, "set": _set, "history": _history}[args.action](args)


def _show(args: Namespace) -> Answer:
    store = open_store(args)
    guide = guides.current(store) if args.at is None else guides.get(store, args.at)
    return Answer(GuideDocument(guide, False), f"# {head(guide)}\n\n{guide_file.write(guide)}".rstrip("\n"))


def _set(args: Namespace) -> Answer:
    text, kinds = guide_file.read(args.file)
    guide, saved = guides.save(open_store(args), text, kinds, by=user(), now=now(), why=args.why)
    change = "labels are given under it from now on" if saved else "the file says what it says already"
    return Answer(GuideDocument(guide, saved), f"{head(guide)}: {change}")


def _history(args: Namespace) -> Answer:
    versions = guides.history(open_store(args))
    lines = [
        GuideLine(guide.version, [kind.key for kind in guide.kinds], guide.saved_by, guide.saved_at, guide.why)
        for guide in versions
    ]
    return Answer(HistoryDocument(lines), table(cells(COLUMNS, versions)))

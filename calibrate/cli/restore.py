"""`restore`: make a backup the store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.report.sentences.traces.upkeep import holds
from db.upkeep import backup
from db.upkeep.schemas import known_schemas


@dataclass(frozen=True, slots=True)
class RestoredDocument:
    """`before` is where the store lies now that was there; null where there was none."""

    store: str
    before: str | None
    schema: str
    rows: Mapping[str, int]


def run(args: Namespace) -> Answer:
    url = args.store or settings.read().store
    restored = backup.restore(url, Path(args.file), replace=args.replace, now=now())
    copy, before = restored.copy, str(restored.before) if restored.before else None
    if copy.schema == known_schemas()[-1]:  # opening an older one would bring it up to date, which nobody asked for
        with closing(open_store(args)) as store:
            store.audit.note("store restored", Path(args.file).name, now=now(), after={"kept": before})
    lines = [f"{copy.path} is the store of {args.file} now: {holds(copy.rows)}"]
    if before:
        lines.append(f"  the store that was there is kept as {before}")
    lines.append("  the file is whole; `check` looks whether what is in it is, too")
    return Answer(RestoredDocument(str(copy.path), before, copy.schema, copy.rows), "\n".join(lines))

"""`purge`: take the texts of traces out of the store for good."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.pairs import parse_pairs
from calibrate.errors import BadInput
from calibrate.report.sentences.traces.purges import goes, lines_of
from calibrate.stats.sampling import designs
from calibrate.workflow.upkeep import purge as step


@dataclass(frozen=True, slots=True)
class PurgeDocument:
    """`removed` counts what went, or with `dry_run` what would go. `compacted`: no byte of it is left in the store's
    files; null where none had to be written anew. `releases` quote what was purged, which is known once it is done;
    `prompts` are files in use that quoted it, and go without it."""

    dry_run: bool
    removed: Mapping[str, int]
    logs: int
    uploads: int
    vectors: bool
    compacted: bool | None
    releases: Sequence[int] = ()
    prompts: Sequence[str] = ()


def run(args: Namespace) -> Answer:
    store = open_store(args)
    where = [parse_pairs([item], "--where") for item in args.where]
    chosen = step.choose(
        store,
        before=_before(args),
        trace_ids=args.trace,
        where=[pair for pairs in where for pair in pairs.items()],
    )
    if args.dry_run:
        counts = store.purges.count(chosen)
        document = PurgeDocument(True, asdict(counts), 0, 0, False, None)
        return Answer(document, f"nothing was removed; this would go: {goes(counts)}")
    if not args.yes:
        counts = store.purges.count(chosen)
        raise BadInput(f"nothing was removed: --yes removes {goes(counts)}, for good; a backup holds them still")
    purged = step.purge(store, chosen, by=user(), now=now())
    document = PurgeDocument(
        False, asdict(purged.counts), purged.logs, purged.uploads, purged.vectors, purged.compacted, purged.releases,
        purged.prompts,
    )  # fmt: skip
    lines: Sequence[str] = lines_of(purged, sqlite=store.file is not None)
    return Answer(document, "\n".join(lines), exit_code=1 if purged.compacted is False else 0)


def _before(args: Namespace) -> datetime | None:
    if args.before is not None and args.older_than is not None:
        raise BadInput("--before and --older-than say the same thing: give one of the two")
    option = "--before" if args.before is not None else "--older-than"
    text = args.before if args.before is not None else args.older_than
    if text is None:
        return None
    moment = designs.window_start(designs.parse_since(text), now())
    if moment is None:
        raise BadInput(f"{option} cannot be {text!r}: write a day like 2026-11-01 or an age like 90d")
    return moment

"""`pull`: fetch new traces, scores and labels from a system that holds them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.progress import progress
from calibrate.cli.pull_preview import show_preview
from calibrate.cli.signals import when_stopped
from calibrate.errors import BadInput
from calibrate.ingest.systems import SYSTEMS, open_source
from calibrate.ingest.systems.base import PullRequest, Source
from calibrate.report.numbers import count
from calibrate.report.sentences.traces import pulls as sentences
from calibrate.report.sentences.traces.imports import left_purged, replaced, unstated
from calibrate.report.sentences.traces.interchange import left_out
from calibrate.report.tables import pulls as columns
from calibrate.report.tables.column import cells, right
from calibrate.sanitize import is_plain
from calibrate.stats.sampling import designs
from calibrate.workflow.pulling.own_table import open_own_table
from calibrate.workflow.pulling.pull import Pulled, pull
from calibrate.workflow.traces.membership import InSample
from db import Store
from db.exchange.pulls import Pull

MOST_ERRORS = 20  # on a terminal; --json lists the first thousand


@dataclass(frozen=True, slots=True)
class PullDocument:
    """What a pull brought. `changed` answers have other content in the system than here, where the first stays;
    `scores` counts new and changed ones by detector; `limited`: it goes on with the next pull. `ahead` rows are dated
    after the pull; `mixed_times`: the cursor column writes times in ways that do not sort as text;
    `held_back`: the query's LIMIT may hide the rows behind the cursor."""

    name: str
    system: str
    imported: int
    duplicates: int
    changed: int
    rejected: int
    purged: int
    labels: int
    labels_unchanged: int
    labels_rejected: int
    scores: Mapping[str, int]
    left_out: Mapping[str, int]
    redacted: Mapping[str, int]
    in_samples: Sequence[InSample]
    outside_samples: int
    limited: bool
    ahead: int
    mixed_times: bool
    held_back: bool
    errors: Sequence[str]


@dataclass(frozen=True, slots=True)
class PullsDocument:
    pulls: Sequence[Pull]


@dataclass(frozen=True, slots=True)
class ForgottenDocument:
    forgotten: str


def run(args: Namespace) -> Answer:
    if args.list:
        pulls = open_store(args).pulls.list()
        text = table(cells(columns.COLUMNS, pulls), right=right(columns.COLUMNS)) if pulls else sentences.NONE
        return Answer(PullsDocument(pulls), text)
    if args.forget is not None:
        return _forget(args)
    if args.system not in SYSTEMS:
        raise BadInput(
            f"`pull` takes a system: {', '.join(SYSTEMS)}" + (f", not {args.system!r}" if args.system else "")
        )
    if args.system != "sql" and (args.query or args.cursor or args.preview):
        raise BadInput("--query, --cursor and --preview are of `pull sql`: leave them out")
    if args.limit is not None and args.limit < 1:
        raise BadInput(f"--limit {args.limit} pulls nothing: give a number from 1")
    at = now()
    since = designs.window_start(designs.parse_since(args.since), at)
    store = open_store(args, create=True)
    if args.preview:
        return show_preview(open_own_table(_request(args, store, lambda _: None), store), redact=args.redact)
    pulled = Pulled()

    def say() -> str:
        return sentences.stopped(pulled.report.imported)

    with when_stopped(say), progress(args, args.system, estimated=True) as advance:

        def notice(text: str) -> None:
            advance(pulled.report.imported, None, f"{args.system}: {text}" if text else args.system)

        def on_page(latest: Pulled) -> None:
            nonlocal pulled
            pulled = latest
            done = latest.report.imported + latest.report.duplicates
            advance(done, done / latest.share if latest.share else None)

        request = _request(args, store, notice)
        source: Source = open_own_table(request, store) if args.system == "sql" else open_source(args.system, request)
        pulled = pull(
            store,
            source,
            since=since,
            restart=args.restart,
            limit=args.limit,
            redact=args.redact,
            now=now,
            on_page=on_page,
        )
    document = _document(source.name, source.system, pulled)
    return Answer(document, "\n".join(_lines(document, pulled)))


def _request(args: Namespace, store: Store, notice: Any) -> PullRequest:
    """What the options ask of the system, with the settings of the pull of that name."""
    overlap = designs.parse_since(args.overlap)
    if not isinstance(overlap, timedelta):
        raise BadInput(f"--overlap {args.overlap!r} is no length of time: give one like 1h or 1d")
    if args.name and not is_plain(args.name):
        raise BadInput(f"the name of the pull {args.name!r} holds a line end or a control character: leave it out")
    if args.query is not None and not args.query.strip():
        raise BadInput("--query is empty: give a SELECT, or leave --query out to ask as the last pull of that name did")
    stored = store.pulls.get(args.name) if args.name else None
    if stored is not None and stored.system != args.system:
        raise BadInput(f"the pull {args.name!r} is one from {stored.system}: give this one another --name")
    return PullRequest(
        project=args.project,
        url=args.url,
        name=args.name,
        options=_options(args),
        stored=stored.settings if stored else {},
        overlap=overlap,
        columns=parse_pairs(args.column, "--column"),
        tool_results=args.tool_results,
        now=now,
        notice=notice,
    )


def _options(args: Namespace) -> dict[str, Any]:
    """What only one system takes, where it is given."""
    options = {"verdicts": args.verdict, "query": _query(args.query), "cursor": args.cursor, "restart": args.restart}
    return {name: value for name, value in options.items() if value}


def _query(text: str | None) -> str | None:
    """The query itself, or that of the file that @FILE names."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read the query in {text[1:]!r}: {getattr(error, 'strerror', None) or error}") from None


def _forget(args: Namespace) -> Answer:
    if not open_store(args).pulls.forget(args.forget):
        raise BadInput(f"there is no pull {args.forget!r}: `pull --list` has their names")
    return Answer(ForgottenDocument(args.forget), f"the pull {args.forget!r} is forgotten; what it brought stays")


def _document(name: str, system: str, pulled: Pulled) -> PullDocument:
    report = pulled.report
    errors = [error.reason for error in (*report.errors, *pulled.label_errors)]
    return PullDocument(
        name=name,
        system=system,
        imported=report.imported,
        duplicates=report.duplicates,
        changed=pulled.changed,
        rejected=report.rejected,
        purged=report.purged,
        labels=pulled.labels,
        labels_unchanged=pulled.labels_unchanged,
        labels_rejected=len(pulled.label_errors),
        scores=pulled.scores,
        left_out=pulled.left_out,
        redacted=report.redacted,
        in_samples=pulled.membership.samples,
        outside_samples=pulled.membership.outside,
        limited=pulled.limited,
        ahead=pulled.ahead,
        mixed_times=pulled.mixed,
        held_back=pulled.held_back,
        errors=errors,
    )


def _lines(document: PullDocument, pulled: Pulled) -> Iterable[str]:
    yield (
        f"{document.name}: {count(document.imported, 'answer')} imported, {count(document.duplicates)} in the store "
        f"already, {count(document.rejected)} rejected"
    )
    if document.labels or document.labels_unchanged:
        yield f"  {count(document.labels, 'label')} added, {count(document.labels_unchanged)} unchanged"
    for name, n in sorted(document.scores.items()):
        yield f"  {count(n, 'score')} of {name}"
    if document.changed:
        yield f"  {sentences.changed(document.changed)}"
    for reason in document.errors[:MOST_ERRORS]:
        yield f"  {reason}"
    if len(document.errors) > MOST_ERRORS:
        yield f"  … and {count(len(document.errors) - MOST_ERRORS)} more; --json lists them"
    if document.purged:
        yield f"  {left_purged(document.purged)}"
    if document.redacted:
        yield f"  {replaced(document.redacted)}"
    if document.left_out:
        yield f"  {left_out(document.left_out)}"
    if document.labels:
        yield from (f"  {line}" for line in unstated(replace(pulled.membership, outside=0)))
        if document.outside_samples:
            yield f"  {sentences.OUTSIDE}"
    if document.ahead:
        yield f"  {sentences.ahead(document.ahead)}"
    if document.mixed_times:
        yield f"  {sentences.MIXED}"
    if document.held_back:
        yield f"  {sentences.HELD_BACK}"
    if document.limited:
        yield f"  {sentences.LIMITED}"

"""Pull: take traces, scores and labels from a system that holds them, page by page, each with its cursor.

What a page brings is stored before its cursor. A pull that is killed in between reads that page again, and what is in
the store already is not taken twice: traces by their ids, labels by labeller and content, scores by trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.importing import ImportReport, add_reports, import_records
from calibrate.ingest.labels import LeftOut
from calibrate.ingest.record import build
from calibrate.ingest.systems.base import LateRemarks, Page, Source
from calibrate.redaction import Redactor, redactor_of
from calibrate.sanitize import one_line
from calibrate.types import Added, Label, Record, StatedScore, TraceFilter
from calibrate.workflow.detection.external import Fate, Intake
from calibrate.workflow.labelling import guides
from calibrate.workflow.labelling.interchange import compare_rows
from calibrate.workflow.traces.membership import NO_LABELS, Membership, membership
from calibrate.workflow.traces.scored_traces import scores_that_came
from db import Store

BATCH = 1000  # records of a page that are stored together
MOST_ERRORS = 1000


@dataclass(slots=True)
class Pulled:
    """What a pull brought, or has brought so far.

    `changed` counts answers whose content in the system is another than in the store, where the first stays. `labels`
    counts those that are new, `labels_unchanged` those that were there; `left_out` what was no label and no score of
    ours. `scores` counts, by detector, those that are new or changed. `share` is how much was read, where that is
    known. `limited`: it ended at its limit, and goes on from there. `ahead` counts rows that are dated after the pull;
    `mixed`: the cursor column writes times in ways that do not sort; `held_back`: the query's own LIMIT may hide the
    rows behind the cursor.
    """

    report: ImportReport = field(default_factory=ImportReport)
    changed: int = 0
    labels: int = 0
    labels_unchanged: int = 0
    label_errors: list[Rejected] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    scores: Counter[str] = field(default_factory=Counter)
    membership: Membership = NO_LABELS
    share: float | None = None
    limited: bool = False
    pages: int = 0
    ahead: int = 0
    mixed: bool = False
    held_back: bool = False


def pull(
    store: Store,
    source: Source,
    *,
    since: datetime | None,
    restart: bool = False,
    limit: int | None = None,
    redact: str | None = None,
    now: Callable[[], datetime],
    on_page: Callable[[Pulled], None] = lambda pulled: None,
) -> Pulled:
    """Take in what a source has since the last pull.

    Parameters
    ----------
    store
        The store.
    source
        What is open to be read.
    since
        The oldest answers to take where nothing was pulled before. Scores and labels that came late are looked for on
        answers since then. None for all.
    restart
        Begin at `since`, not where the last pull ended.
    limit
        End when so many new answers are in the store.
    redact
        What is replaced before anything is stored; None for what TOUCHSTONE_REDACT says.
    now
        The clock.
    on_page
        Hears after every page what has come so far.

    Returns
    -------
    Pulled
        What it brought.
    """
    redactor = redactor_of(settings.imports().redact if redact is None else redact)
    stored = store.pulls.get(source.name)
    pages = iter(source.fetch(since, None if stored is None or restart else stored.cursor))
    first = list(islice(pages, 1))  # what cannot be asked fails here, before its settings are kept
    store.pulls.begin(source.name, source.system, source.settings, now=now(), restart=restart)
    taking = _Taking(store, source, redactor, limit, now)
    for page in chain(first, pages):
        taking.take(page)
        on_page(taking.pulled)
        if taking.pulled.limited:
            break
    else:
        if isinstance(source, LateRemarks):
            # What was pulled now may be older than that, where the last pull was long ago.
            begin = None if since is None else min(since, taking.oldest or since)
            where = TraceFilter(since=begin, undated=begin is None)
            for page in source.remarks(begin, store.origins.ids(source.name, source.system, where)):
                taking.take(page)
                on_page(taking.pulled)
        store.pulls.finish(source.name, now=now())
    return taking.end()


class _Taking:
    """Stores the pages of one run."""

    def __init__(
        self, store: Store, source: Source, redactor: Redactor | None, limit: int | None, now: Callable[[], datetime]
    ) -> None:
        self._store, self._source, self._redactor, self._limit, self._now = store, source, redactor, limit, now
        self._limits = settings.imports()
        self._kinds = [kind.key for kind in guides.known_kinds(store)]
        self._labelled: set[str] = set()
        self._intakes: dict[str, Intake] = {}
        self.oldest: datetime | None = None
        self.pulled = Pulled()

    def take(self, page: Page) -> None:
        """Store a page, then its cursor. A page that is cut by the limit leaves the cursor of the one before."""
        before = self.pulled.report.imported
        self._take_rows(iter(page.rows), page.names)
        self._take_labels(page)
        self._take_scores(page.scores)
        self.pulled.left_out.update(page.left_out)
        self.pulled.ahead, self.pulled.mixed = self.pulled.ahead + page.ahead, self.pulled.mixed or page.mixed
        self.pulled.held_back = self.pulled.held_back or page.held_back
        self.pulled.share, self.pulled.pages = page.share, self.pulled.pages + 1
        cursor = None if self.pulled.limited else page.cursor
        brought = self.pulled.report.imported - before
        self._store.pulls.advance(self._source.name, cursor, traces=brought, now=self._now())

    def end(self) -> Pulled:
        """Say where the labels count, and note in the audit log what came."""
        if self._labelled:
            self.pulled.membership = membership(self._store, self._labelled)
        report = self.pulled.report
        after = {"traces": report.imported, "labels": self.pulled.labels, "scores": self.pulled.scores.total()}
        if any(after.values()):
            self._store.audit.note("traces pulled", self._source.name, now=self._now(), after=after)
        return self.pulled

    def _take_rows(self, rows: Iterator[Row | Rejected], names: Mapping[int, str]) -> None:
        while True:
            left = None if self._limit is None else self._limit - self.pulled.report.imported
            records = [self._record(row, names) for row in islice(rows, BATCH if left is None else min(left, BATCH))]
            if not records:
                self.pulled.limited = left == 0 and next(rows, None) is not None
                return
            times = [record.trace.timestamp for record in records if isinstance(record, Record)]
            self.oldest = min(filter(None, [self.oldest, *times]), default=None)
            report = import_records(self, iter(records), batch_size=BATCH, now=self._now())
            rejected = tuple(record for record in records if isinstance(record, Rejected))
            self.pulled.changed += report.rejected - len(rejected)
            report = replace(report, rejected=len(rejected), errors=rejected)
            self.pulled.report = add_reports([self.pulled.report, report])

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        """Store a batch of traces, and the scores that they bring along."""
        added = self._store.traces.add(records, labels_as=labels_as, now=now, again=again)
        names = [record.trace.id for record in records]
        self._store.origins.note(self._source.name, self._source.system, names)
        by_name: defaultdict[str, list[StatedScore]] = defaultdict(list)
        for name, score in scores_that_came(records, added):
            by_name[name].append(score)
        self._take_scores(by_name)
        return added

    def _record(self, row: Row | Rejected, names: Mapping[int, str]) -> Record | Rejected:
        name: Any = names.get(row.line)
        record: Record | Rejected = row if isinstance(row, Rejected) else Rejected(row.line, "")
        if isinstance(row, Row):
            name = row.fields.get("trace_id") or name
            record = build(row, format_name=self._source.system, limits=self._limits, redactor=self._redactor)
        if isinstance(record, Rejected) and isinstance(name, str) and name:
            name = name if self._redactor is None else self._redactor.redact_text(name)
            return replace(record, reason=f"{one_line(name, 80)}: {record.reason}")
        return record

    def _take_labels(self, page: Page) -> None:
        if not page.labels:
            return
        labels = []
        for each in compare_rows(self._store, iter(page.labels), kinds=self._kinds):
            if isinstance(each, Label):
                labels.append(each if each.labeller else replace(each, labeller=self._source.system))
            elif isinstance(each, LeftOut):
                self.pulled.left_out[each.what] += 1
            elif len(self.pulled.label_errors) < MOST_ERRORS:
                self.pulled.label_errors.append(each)
        added, missing = self._store.labels.add_many(labels, now=self._now())
        self.pulled.labels += added
        self.pulled.labels_unchanged += len(labels) - len(missing) - added
        self._labelled.update({label.trace_id for label in labels}.difference(missing))

    def _take_scores(self, scores: Mapping[str, Sequence[StatedScore]]) -> None:
        for name, values in scores.items():
            try:
                intake = self._intakes.get(name) or Intake(self._store, name, now=self._now())
                fates = intake.add(values)
            except BadInput:  # a name that no detector can have
                self.pulled.left_out[f"scores {name}"] += len(values)
                continue
            self._intakes[name] = intake
            news = sum(fate in (Fate.NEW, Fate.CHANGED) for fate in fates)
            self.pulled.scores[name] += news
            other = len(fates) - news - sum(fate is Fate.SAME for fate in fates)
            if other:
                self.pulled.left_out[f"scores {name}"] += other

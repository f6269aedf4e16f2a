"""`release --check`: what stands between each saved threshold and its release, and what the release would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from calibrate.cli import Answer
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing import checklist as words
from calibrate.report.sentences.releasing import impact as impacts
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.releasing.checklist import Checklist, Item, checklists
from calibrate.workflow.releasing.impact import impact
from db import Store
from db.releases import ReleaseRequest


@dataclass(frozen=True, slots=True)
class ItemDocument:
    mark: str
    why: str


@dataclass(frozen=True, slots=True)
class ThresholdDocument:
    """One saved threshold. `blocks`: a release asks a reason for it, or does not take it."""

    detector: str
    blocks: bool
    reason: str
    items: Mapping[str, ItemDocument]


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """The saved thresholds, and what releasing those that can go out would change (None: nothing is live yet)."""

    thresholds: Sequence[ThresholdDocument]
    sentence: str | None


def check(store: Store, request: ReleaseRequest, now: datetime) -> Answer:
    """Say how each threshold stands. Exit code 1 where a release would ask a reason that is not given."""
    rows = checklists(store, now=now, detectors=request.detectors)
    if not rows:
        raise BadInput("nothing to release: choose and save an operating point first (`choose DETECTOR --save`)")
    sentence = _changes(store, request, rows, now)
    lines = [line for row in rows for line in _lines(row, now)]
    document = CheckDocument([_document(row, now) for row in rows], sentence)
    blocked = any(row.blocks for row in rows) and not request.reason
    return Answer(document, "\n".join([*lines, *([sentence] if sentence else [])]), exit_code=1 if blocked else 0)


def _changes(store: Store, request: ReleaseRequest, rows: Sequence[Checklist], now: datetime) -> str | None:
    before = history.live_release(store)
    names = [row.detector for row in rows if not row.facts.is_open]
    if before is None or not names:
        return None
    points = store.points.latest()
    after = build_candidate(store, replace(request, detectors=names), points=points, previous=before, now=now)
    return impacts.summary(impact(store, before, after))


def _lines(row: Checklist, now: datetime) -> Iterator[str]:
    yield f"{row.detector}: {words.headline(row)}"
    for item in Item:
        yield f"  {words.line(row, item, now)}"


def _document(row: Checklist, now: datetime) -> ThresholdDocument:
    items = {str(item): ItemDocument(str(row.marks[item]), words.words(row, item, now)) for item in Item}
    return ThresholdDocument(row.detector, row.blocks, row.reason, items)

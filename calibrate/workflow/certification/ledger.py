"""The error ledger: attempts at one precision on the same traffic share one 5%, whoever makes them and how.

An earlier attempt counts whatever its detector, settings, samples or their order, and whatever came of it: what is
drawn is spent, finished or abandoned. It does not count where all of its traces came before the new window begins. An
attempt on one segment counts as one on all traffic of its time does, whatever tells the segments apart: two operations,
two models. So the certificates of all segments of a window err in 5% together. The k-th of attempts of which each is of
the time of each has at least k - 1 before it, so their errors are at most level(1) + level(2) + ..., which is the 5%.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from calibrate.stats.intervals.exact_tests import ALPHA, left_after, level
from calibrate.types import TraceFilter
from calibrate.workflow.certification import attempts
from calibrate.workflow.certification.attempts import Attempt
from db import Store

SAME = 0.005
"""Targets that differ by less are one target: nobody releases at 70.2% because 70% failed."""


@dataclass(frozen=True)
class Entry:
    """An attempt whose traces were drawn, as the `order`-th draw of the store. `last`: when the newest of its traces
    came, None where none is dated; `undated`: whether some are not."""

    order: int
    target: float
    last: datetime | None
    undated: bool


@dataclass(frozen=True)
class Ledger:
    """What is spent of `alpha` before an attempt: `earlier` attempts on the same traffic were drawn."""

    earlier: int
    alpha: float = ALPHA

    @property
    def attempt(self) -> int:
        """Which attempt comes next, from 1."""
        return self.earlier + 1

    @property
    def level(self) -> float:
        """The error that the next attempt may make."""
        return level(self.attempt, self.alpha)

    @property
    def left(self) -> float:
        """The error that is left for this attempt and all later ones."""
        return left_after(self.earlier, self.alpha)


def shares_traffic(entry: Entry, where: TraceFilter) -> bool:
    """Whether an earlier attempt drew from traffic of the time of this window, of whichever segment."""
    if where.since is None or (entry.undated and where.undated):
        return True
    return entry.last is not None and entry.last >= where.since


def open_ledger(entries: Iterable[Entry], target: float, where: TraceFilter, *, before: int | None = None) -> Ledger:
    """Count the attempts at this target on this window's traffic; with `before`, those drawn before that one."""
    return Ledger(
        sum(
            abs(entry.target - target) < SAME and shares_traffic(entry, where)
            for entry in entries
            if before is None or entry.order < before
        )
    )


def next_attempt(store: Store, target: float, where: TraceFilter) -> Ledger:
    """What is spent before a new attempt at this target on this window."""
    return open_ledger(_load_entries(store), target, where)


def ledger_of(store: Store, attempt: Attempt) -> Ledger:
    """What was spent before an attempt was drawn, or now where it is not drawn yet."""
    return open_ledger(_load_entries(store), attempt.plan.target, attempt.terms.where, before=attempt.fresh_sample_id)


def _load_entries(store: Store) -> list[Entry]:
    drawn = (attempts.attempt_of(row) for row in store.certifications.of())
    return [_entry_of(store, attempt) for attempt in drawn if attempt.fresh_sample_id is not None]


def _entry_of(store: Store, attempt: Attempt) -> Entry:
    assert attempt.fresh_sample_id is not None
    times = [row.timestamp for row in attempts.fresh_rows(store, attempt)]
    dated = [time for time in times if time is not None]
    return Entry(
        attempt.fresh_sample_id,
        attempt.plan.target,
        max(dated, default=None),
        len(dated) < len(times),
    )

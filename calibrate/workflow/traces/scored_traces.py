"""Traces that bring scores along: both go into the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from calibrate.types import Added, Record, StatedScore
from calibrate.workflow.traces.external_scores import Intakes
from db import Store


def scores_that_came(records: Sequence[Record], added: Added) -> list[tuple[str, StatedScore]]:
    """The scores, with their detectors' names, of the records that were not refused."""
    refused = {*added.conflicts, *added.purged}  # one line may hold several traces
    return [pair for record in records if (record.line, record.trace.id) not in refused for pair in record.scores]


class ScoredTraces:
    """A sink for traces that takes the scores that come along."""

    def __init__(self, store: Store, *, now: datetime) -> None:
        self._store = store
        self.intakes = Intakes(store, now=now)

    def add(self, records: Sequence[Record], *, labels_as: str | None, now: datetime, again: bool = False) -> Added:
        added = self._store.traces.add(records, labels_as=labels_as, now=now, again=again)
        if any(record.scores for record in records):
            self.intakes.add(scores_that_came(records, added))
        return added

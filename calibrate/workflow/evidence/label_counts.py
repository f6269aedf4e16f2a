"""How far labelling has come: what every page and command says beside a figure that stands on labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import takewhile

from calibrate.types import Sample, TraceFilter
from db import Store


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Of `total` traces, `labelled` have a verdict that counts: those of a sample up to the first member without one.

    They are `clean`, `hallucinated`, `unsure` or `disputed`. `waiting` have a verdict behind that gap: they count once
    it is closed.
    """

    labelled: int
    total: int
    clean: int
    hallucinated: int
    unsure: int
    disputed: int
    waiting: int

    @property
    def undecided(self) -> int:
        """Labels that are in no figure: unsure and disputed ones."""
        return self.unsure + self.disputed


def label_counts(store: Store, sample: Sample | None) -> LabelCounts:
    """Count the labels of a sample, or of several merged; without one every label in the store, of all its traces.

    A trace that several of the samples drew is one trace. It counts where it counts in any of them.
    """
    if sample is None:
        counts = store.labels.gold_counts()
        return _of(Counter[str | None](counts), total=store.traces.count(TraceFilter()), labelled=sum(counts.values()))
    members: dict[int, str | None] = {}
    counted: dict[int, str | None] = {}
    for part in sample.parts or (sample,):
        verdicts = store.samples.verdicts(part.id)
        members.update(verdicts)
        counted.update(takewhile(lambda member: member[1] is not None, verdicts))
    labelled = sum(gold is not None for gold in members.values())
    return _of(Counter(counted.values()), total=len(members), labelled=labelled)


def _of(counts: Counter[str | None], *, total: int, labelled: int) -> LabelCounts:
    """From the verdicts that count, and how many of the `total` traces are `labelled` at all."""
    clean, hallucinated = counts["clean"], counts["hallucinated"]
    unsure, disputed = counts["unsure"], counts["disputed"]
    counted = clean + hallucinated + unsure + disputed
    return LabelCounts(counted, total, clean, hallucinated, unsure, disputed, labelled - counted)

"""How far labelling has come: what every page and command says beside a figure that stands on labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from calibrate.stats.sampling.designs import count_prefix
from calibrate.types import PURGED, Sample, TraceFilter
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from db import Store


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Of `total` traces, `labelled` have a verdict that counts: those of a sample up to the first member without one.

    They are `clean`, `hallucinated`, `unsure` or `disputed`. `waiting` have a verdict behind that gap: they count once
    it is closed. `purged` members lost their texts before they had a verdict: nothing waits for them. `in_prompts` have
    a verdict and were set aside for a judge's prompt: they count no more.
    """

    labelled: int
    total: int
    clean: int
    hallucinated: int
    unsure: int
    disputed: int
    waiting: int
    purged: int = 0
    in_prompts: int = 0

    @property
    def undecided(self) -> int:
        """Labels that are in no figure: unsure and disputed ones."""
        return self.unsure + self.disputed


def label_counts(store: Store, sample: Sample | None) -> LabelCounts:
    """Count the labels of a sample, or of several merged; without one every label in the store, of all its traces.

    A trace that several of the samples drew is one trace. It counts where it counts in any of them.
    """
    counted = count_labels(store, NOBODY, sample)
    counts = Counter(row.gold for row in (*counted.rows, *counted.undecided))
    purged = counts.pop(PURGED, 0)
    labelled = counts.total()
    if sample is None:
        total, waiting = store.traces.count(TraceFilter()), 0
    else:
        members = dict(member for part in sample.parts or (sample,) for member in store.samples.verdicts(part.id))
        total = len(members)
        waiting = sum(gold not in (None, PURGED) for gold in members.values()) - labelled - counted.in_prompts
        purged = sum(gold == PURGED for gold in members.values())
    return LabelCounts(
        labelled, total, counts["clean"], counts["hallucinated"], counts["unsure"], counts["disputed"], waiting, purged,
        counted.in_prompts,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gap:
    """Members of a sample that nobody has labelled, before the last that somebody has: `skipped` of them hold back
    `waiting` labels."""

    skipped: int
    waiting: int


def find_gap(store: Store, sample: Sample) -> Gap | None:
    """The gap in the labels of a drawn sample; None where none of its labels waits."""
    gold = [verdict for _, verdict in store.samples.verdicts(sample.id)]
    prefix = count_prefix(gold)
    waiting = [place for place, verdict in enumerate(gold) if place > prefix and verdict not in (None, PURGED)]
    return Gap(gold[prefix : waiting[-1]].count(None), len(waiting)) if waiting else None

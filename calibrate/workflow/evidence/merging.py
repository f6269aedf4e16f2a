"""Several samples taken as one: each stratum of each sample is a stratum of its own.

Windows may overlap, as those of two weeks do that reach back a fortnight. Labels of traces that two of the samples
could have drawn form a stratum of their own, and each sample speaks for the share of such traces that it has of their
labels: no trace counts twice, and a small sample does not spoil a large one. A trace that both samples drew is one
label, which has a stratum in each and speaks for both shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from calibrate.stats.sampling.designs import must_speak_for_all
from calibrate.types import Sample, Stratum, TraceFilter, merged_name
from db import Store
from db.scores import Row

MERGED = "merged"  # in place of a design: every part has its own


def share_out(store: Store, rows_by_sample: Sequence[tuple[Sample, Sequence[Row]]]) -> list[Row]:
    """The labels of all the samples, in strata that say for which share of its traces each sample speaks (Hartley 1962,
    with shares that do not depend on the verdicts)."""
    pks = sorted({row.pk for _, rows in rows_by_sample for row in rows})
    labels: Counter[int] = Counter()  # per trace, of all samples that could have drawn it
    for sample, rows in rows_by_sample:
        labels.update(dict.fromkeys(store.pools.among(*_find_pool(sample), pks), len(rows)))
    return [
        replace(row, strata=tuple(replace(stratum, share=_share(len(rows), labels[row.pk])) for stratum in row.strata))
        for _, rows in rows_by_sample
        for row in rows
    ]


def _share(own: int, every: int) -> float:
    return own / max(own, every)


def merge_repeats(rows: Sequence[Row]) -> list[Row]:
    """The rows with each trace once, where it comes first, in the strata of all the samples that drew it."""
    strata: dict[int, tuple[Stratum, ...]] = {}
    for row in rows:
        strata[row.pk] = (*strata.get(row.pk, ()), *row.strata)
    first = {row.pk: row for row in reversed(rows)}
    return [replace(first[pk], strata=strata[pk]) for pk in strata]


def merge_samples(samples: Sequence[Sample]) -> Sample:
    """The samples as one of all their traffic. It is not stored.

    Raises BadInput for a sample that cannot stand for its traffic.
    """
    for sample in samples:
        must_speak_for_all(sample)
    return Sample(
        id=0,
        name=merged_name([sample.name for sample in samples]),
        design=MERGED,
        by=None,
        size=sum(sample.size for sample in samples),
        seed=samples[0].seed,
        pool=sum(sample.pool for sample in samples),
        undated=sum(sample.undated for sample in samples),
        filter=_span_windows([sample.filter for sample in samples]),
        strata={},
        created_at=max(sample.created_at for sample in samples),
        parts=tuple(samples),
    )


def _find_pool(sample: Sample) -> tuple[TraceFilter, int | None]:
    """What the sample could have drawn; labels that came since do not change it."""
    at = sample.options.at
    return replace(sample.filter, label="any"), at.trace if at else None


def _span_windows(filters: Sequence[TraceFilter]) -> TraceFilter:
    """The window around all of them; their other conditions only where they agree."""
    timeless = [replace(where, since=None, until=None) for where in filters]
    same = all(where == timeless[0] for where in timeless)
    since = [where.since for where in filters if where.since]
    until = [where.until for where in filters if where.until]
    return replace(
        timeless[0] if same else TraceFilter(undated=any(where.undated for where in filters)),
        since=min(since) if len(since) == len(filters) else None,
        until=max(until) if len(until) == len(filters) else None,
    )

"""Several samples as one: each stratum of each sample is a stratum of its own.

Windows may overlap, as those of two weeks do that reach back a fortnight. A trace that two of the samples could have
drawn is told apart, as "W46: top 1/8 ×0.75", and each of them speaks for the part of such traces that it has of their
labels: none counts twice, and a small sample does not spoil a large one. A trace that both did draw is one label,
"W46: top 1/8 ×0.75 ⊕ W47: rest ×0.25", and speaks for both parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from calibrate.stats.sampling.designs import must_speak_for_all
from calibrate.types import Sample, TraceFilter
from db import Store, pools
from db.scores import Row

MERGED = "merged"  # in place of a design: every part has its own
TIMES, BOTH = " ×", " ⊕ "


def parts_of(store: Store, sample: Sample) -> list[Sample]:
    """The samples that a merged one is made of; a plain sample is its own only part."""
    names = sample.options.get("parts", ())
    return [one for name in names if (one := store.samples.get(name))] if names else [sample]


def told_apart(store: Store, parts: Sequence[tuple[Sample, Sequence[Row]]]) -> list[Row]:
    """The labels of all the samples, in strata that say for what part of its traces each sample speaks (Hartley 1962,
    with shares that the verdicts have no part in)."""
    pks = sorted({row.pk for _, rows in parts for row in rows})
    labels: Counter[int] = Counter()  # of all samples that a trace could have been drawn in
    for part, rows in parts:
        labels.update(dict.fromkeys(pools.among(store.engine, *_pool(part), pks), len(rows)))
    return [
        replace(row, stratum=stratum_of(part, row.stratum, len(rows) / max(labels[row.pk], len(rows))))
        for part, rows in parts
        for row in rows
    ]


def stratum_of(part: Sample, stratum: str, share: float = 1.0) -> str:
    """What a stratum of one of several samples is called among all of theirs, where it speaks for so much of it."""
    return f"{part.name}: {stratum}{TIMES}{share:.6g}" if share < 1 else f"{part.name}: {stratum}"


def once(rows: Sequence[Row]) -> list[Row]:
    """The rows, each trace in the place where it stands first, in the strata of all the samples that drew it."""
    strata: dict[int, list[str]] = {}
    for row in rows:
        strata.setdefault(row.pk, []).append(row.stratum)
    first = {row.pk: row for row in reversed(rows)}
    return [replace(first[pk], stratum=BOTH.join(names)) for pk, names in strata.items()]


def origins(sample: Sample, stratum: str) -> list[tuple[str, float]]:
    """The strata a row was drawn in, and for what part of each it speaks."""
    return [_origin(sample, one) for one in ([stratum] if stratum in sample.strata else stratum.split(BOTH))]


def _origin(sample: Sample, stratum: str) -> tuple[str, float]:
    if stratum in sample.strata:
        return stratum, 1.0
    name, _, share = stratum.rpartition(TIMES)
    return name, float(share)


def merged(store: Store, samples: Sequence[Sample]) -> Sample:
    """The samples as one of all their traffic, "W46 + W47", which is not kept: its id is 0.

    Raises BadInput for a sample that cannot stand for its traffic.
    """
    for sample in samples:
        must_speak_for_all(sample)
    return Sample(
        id=0,
        name=" + ".join(sample.name for sample in samples),
        design=MERGED,
        by=None,
        size=sum(sample.size for sample in samples),
        seed=samples[0].seed,
        pool=sum(sample.pool for sample in samples),
        undated=sum(sample.undated for sample in samples),
        filter=_hull([sample.filter for sample in samples]),
        strata={stratum_of(s, name): sizes for s in samples for name, sizes in s.strata.items()},
        created_at=max(sample.created_at for sample in samples),
        options={"parts": [sample.name for sample in samples]},
    )


def _pool(sample: Sample) -> tuple[TraceFilter, int | None]:
    """What the sample could have drawn; labels that came since do not change it."""
    at = sample.options.get("at")
    return replace(sample.filter, label="any"), at["trace"] if at else None


def _hull(filters: Sequence[TraceFilter]) -> TraceFilter:
    """The window around all of them; what else they ask for only where they agree."""
    alike = replace(filters[0], since=None, until=None)
    same = all(replace(one, since=None, until=None) == alike for one in filters)
    since = [one.since for one in filters if one.since]
    until = [one.until for one in filters if one.until]
    return replace(
        alike if same else TraceFilter(undated=any(one.undated for one in filters)),
        since=min(since) if len(since) == len(filters) else None,
        until=max(until) if len(until) == len(filters) else None,
    )

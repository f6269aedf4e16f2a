"""Labels that came in with a statement of how their traces were chosen: they become a sample, so that all that knows
samples knows them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import numpy as np

from calibrate.errors import BadInput
from calibrate.sanitize import one_line
from calibrate.stats.sampling.designs import STATED
from calibrate.types import Member, Sample, SampleOptions, TraceFilter
from calibrate.workflow.traces.membership import must_not_be_drawn
from db import Store
from db.traces import LabelledTrace

ALL = "all"
NEXT = timedelta(microseconds=1)


def keep_stated(store: Store, name: str, trace_ids: Iterable[str], *, design: str, now: datetime) -> Sample:
    """Keep the labelled ones of these traces as a sample of the design that their user states, one of `STATED`.

    A random sample speaks for the traces of the store between its first and its last. The order of its members is
    random. Where a sample has the name, another one is found; where one has this design and these members, that is
    returned. Raises BadInput for an unknown design, where none of the traces has a label, and for a random sample of
    what was mostly drawn otherwise.
    """
    trace_ids = set(trace_ids)
    if design not in STATED:
        raise BadInput(f"labels cannot be stated as {design!r}: say {', '.join(STATED)}")
    if design == "random":
        must_not_be_drawn(store, trace_ids)
    labelled = store.traces.labelled(trace_ids)
    if not labelled:
        raise BadInput(f"none of the traces has a label, so there is no sample by {design} to keep")
    keys = {trace.pk for trace in labelled}
    name, same = _find_name(store, one_line(name, 150).strip() or "labels", design, keys)
    if same is not None:
        return same
    where = _window_of(labelled) if design == "random" else TraceFilter()
    stratum, pool = (ALL, store.traces.count(where)) if design == "random" else (design, len(keys))
    seed = secrets.randbits(31)
    members = [Member(pk, len(keys) / pool, stratum) for pk in sorted(keys)]
    return store.samples.add(
        name,
        design=design,
        by=None,
        seed=seed,
        pool=pool,
        undated=store.traces.undated(where),
        where=where,
        strata={stratum: (pool, len(keys))},
        members=[members[place] for place in np.random.default_rng(seed).permutation(len(members))],
        now=now,
        options=SampleOptions(at=store.pools.moment()) if design == "random" else None,
    )


def _window_of(labelled: Sequence[LabelledTrace]) -> TraceFilter:
    """From the first to the last of the traces; undated traces are in it if some of them are."""
    times = [trace.timestamp for trace in labelled if trace.timestamp is not None]
    if not times:
        return TraceFilter()
    return TraceFilter(since=min(times), until=max(times) + NEXT, undated=len(times) < len(labelled))


def _find_name(store: Store, name: str, design: str, keys: set[int]) -> tuple[str, Sample | None]:
    """A name that no other sample has: "complaints", "complaints 2" …; and the sample that is this one already."""
    number, tried = 1, name
    while (sample := store.samples.get(tried)) is not None:
        if sample.design == design and {member.trace_pk for member in store.samples.members(sample.id)} == keys:
            return tried, sample
        number += 1
        tried = f"{name} {number}"
    return tried, None

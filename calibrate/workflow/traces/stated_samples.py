"""Labels that came in with a statement of how their traces were chosen: they become a sample, so that all that knows
samples knows them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from calibrate.errors import BadInput
from calibrate.sanitize import one_line
from calibrate.stats.sampling.designs import FEEDBACK, FLAGGED_ONLY, PICKED, STATED, UNKNOWN
from calibrate.types import Member, Sample, SampleOptions, Statement, TraceFilter
from calibrate.workflow.traces.membership import must_not_be_drawn
from db import Store
from db.traces import LabelledTrace

ALL = "all"
NEXT = timedelta(microseconds=1)


def keep_stated(
    store: Store, name: str, trace_ids: Iterable[str], *, design: str, by: str = "", now: datetime
) -> Sample:
    """Keep the labelled ones of these traces as a sample of the design that their user states, one of `STATED`.

    A random sample speaks for the traces of the store between its first and its last. The order of its members is
    random. Where a sample has the name, another one is found; where one has these members and was stated, it takes this
    design. Raises BadInput for an unknown design, where none of the traces has a label, and for a random sample of
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
    name, same = _find_name(store, one_line(name, 150).strip() or "labels", keys)
    if same is not None:
        return state_again(store, same, design=design, by=by, now=now)
    where, stratum, pool = _frame(store, labelled, design)
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
        options=SampleOptions(
            at=store.pools.moment() if design == "random" else None, stated=(Statement(design, by, now),)
        ),
    )


def state_again(store: Store, sample: Sample, *, design: str, by: str = "", now: datetime) -> Sample:
    """State otherwise how the traces of an imported sample were chosen, or that nobody knows; what was said before is
    kept beside it. Raises BadInput for an unknown design, and for a sample that was drawn here: its design is known.
    """
    if design not in (*STATED, UNKNOWN):
        raise BadInput(f"labels cannot be stated as {design!r}: say {', '.join((*STATED, UNKNOWN))}")
    if is_hand_picked(sample):
        raise BadInput(
            f"the sample {sample.name!r} was picked by hand, trace by trace, so it speaks for no traffic whatever is "
            "stated: draw a sample instead"
        )
    if not is_stated(sample):
        raise BadInput(
            f"the sample {sample.name!r} was drawn here ({sample.design}), so nobody need state how; only the design "
            "of imported labels is stated"
        )
    if sample.design == design:
        return sample
    trace_ids = {line.trace_id for line in store.samples.lines(sample.id)}
    if design == "random":
        must_not_be_drawn(store, trace_ids)
    where, stratum, pool = _frame(store, store.traces.labelled(trace_ids), design)
    before = sample.options.stated or (Statement(sample.design, "", sample.created_at),)
    return store.samples.restate(
        sample,
        design=design,
        pool=pool,
        undated=store.traces.undated(where),
        where=where,
        stratum=stratum,
        options=replace(
            sample.options,
            at=store.pools.moment() if design == "random" else None,
            stated=(*before, Statement(design, by, now)),
        ),
    )


def is_stated(sample: Sample) -> bool:
    """Whether a sample's design is what its user says of imported labels."""
    if is_hand_picked(sample):
        return False
    return bool(sample.options.stated) or sample.design in (FLAGGED_ONLY, FEEDBACK)


def is_hand_picked(sample: Sample) -> bool:
    """Whether people picked the traces of a sample one by one, here."""
    return sample.design == FEEDBACK and set(sample.strata) == {PICKED}


def _frame(store: Store, labelled: Sequence[LabelledTrace], design: str) -> tuple[TraceFilter, str, int]:
    """What a stated sample speaks for: the window, the name of its one stratum, and how many traces that holds."""
    if design != "random":
        return TraceFilter(), design, len(labelled)
    where = _window_of(labelled)
    return where, ALL, store.traces.count(where)


def _window_of(labelled: Sequence[LabelledTrace]) -> TraceFilter:
    """From the first to the last of the traces; undated traces are in it if some of them are."""
    times = [trace.timestamp for trace in labelled if trace.timestamp is not None]
    if not times:
        return TraceFilter()
    return TraceFilter(since=min(times), until=max(times) + NEXT, undated=len(times) < len(labelled))


def _find_name(store: Store, name: str, keys: set[int]) -> tuple[str, Sample | None]:
    """A name that no other sample has: "complaints", "complaints 2" …; and the stated sample that has these members."""
    number, tried = 1, name
    while (sample := store.samples.get(tried)) is not None:
        if is_stated(sample) and {member.trace_pk for member in store.samples.members(sample.id)} == keys:
            return tried, sample
        number += 1
        tried = f"{name} {number}"
    return tried, None

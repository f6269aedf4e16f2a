"""Hand-picked samples: lists of traces that somebody chose by looking. They speak for no traffic, and never will."""

from __future__ import annotations

import secrets
from datetime import datetime

from calibrate.errors import BadInput
from calibrate.sanitize import one_line
from calibrate.stats.sampling.designs import FEEDBACK, PICKED
from calibrate.types import Member, Sample, SampleOptions, TraceFilter
from calibrate.workflow.traces.stated_samples import is_hand_picked
from db import Store


def hand_picked(store: Store) -> list[Sample]:
    """The hand-picked samples, newest first."""
    return [sample for sample in store.samples.list() if is_hand_picked(sample)]


def pick(store: Store, pk: int, name: str, *, now: datetime) -> tuple[Sample, bool]:
    """Put a trace at the end of a hand-picked sample, which is made where none has the name.

    Returns the sample, and whether the trace is new in it. Raises BadInput for a name that no sample can have, and for
    a sample that was drawn or imported: a trace that somebody chose would spoil its design.
    """
    name = one_line(name, 150).strip()
    if not name:
        raise BadInput("a hand-picked sample needs a name: say which, like to-discuss")
    sample = store.samples.get(name)
    if sample is None:
        return store.samples.add(
            name, design=FEEDBACK, by=None, seed=secrets.randbits(31), pool=1, undated=0, where=TraceFilter(),
            strata={PICKED: (1, 1)}, members=[Member(pk, 1.0, PICKED)], now=now,
            options=SampleOptions(),
        ), True  # fmt: skip
    if not is_hand_picked(sample):
        raise BadInput(
            f"the sample {name!r} was drawn by its design ({sample.design}), and a trace chosen by hand would spoil "
            "it: take a hand-picked sample, or a new name"
        )
    if any(member.trace_pk == pk for member in store.samples.members(sample.id)):
        return sample, False
    size = sample.size + 1
    strata = {PICKED: (size, size)}
    return store.samples.extend(sample, [Member(pk, 1.0, PICKED)], strata=strata, options=sample.options), True

"""Which samples the traces of imported labels are members of: there their labels count, in the sample's order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calibrate.errors import BadInput
from calibrate.stats.sampling.designs import STATED, UNKNOWN, count_prefix
from db import Store

_DRAWN = {
    "octave": "by octaves",
    "stratified": "by strata",
    "uncertain": "around a threshold",
    "fresh-flagged": "of flagged traces",
}


@dataclass(frozen=True)
class InSample:
    """Labels of members of one sample: `counted` lie before its first member without a verdict, `waiting` behind it."""

    sample: str
    counted: int
    waiting: int


@dataclass(frozen=True)
class Membership:
    """Labels of traces by the samples these are in, newest sample first; `outside` are of traces in none."""

    outside: int
    samples: tuple[InSample, ...]


NO_LABELS = Membership(0, ())


def membership(store: Store, trace_ids: Iterable[str]) -> Membership:
    """Count the labels of these traces by sample. A trace that several samples drew counts in each."""
    outside, samples = set(trace_ids), []
    every = frozenset(outside)
    for sample in store.samples.list():
        lines = store.samples.lines(sample.id)
        mine = [line.trace_id for line in lines if line.gold is not None and line.trace_id in every]
        if not mine:
            continue
        prefix = {line.trace_id for line in lines[: count_prefix([line.gold for line in lines])]}
        counted = len(prefix.intersection(mine))
        samples.append(InSample(sample.name, counted, len(mine) - counted))
        outside.difference_update(mine)
    return Membership(len(outside), tuple(samples))


def must_not_be_drawn(store: Store, trace_ids: Iterable[str]) -> None:
    """Raises BadInput where most of the traces are members of a sample that was not drawn at random: so are they not.

    Samples whose design their user stated do not count.
    """
    ids = set(trace_ids)
    for sample in store.samples.list():
        if sample.design in (*STATED, UNKNOWN):
            continue
        mine = sum(line.trace_id in ids for line in store.samples.lines(sample.id))
        if 2 * mine > len(ids):
            raise BadInput(
                f"{mine:,} of {len(ids):,} traces are members of sample {sample.name}, drawn "
                f"{_DRAWN.get(sample.design, f'by {sample.design}')}, so they are not a random part of the traffic: "
                "import without --design, they count there, in the sample's order"
            )

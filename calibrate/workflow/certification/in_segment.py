"""Labels of one segment of the traffic: its rows of a sample, weighted by what they stand for in it."""

from __future__ import annotations

from dataclasses import replace

from calibrate.errors import BadInput
from calibrate.types import ATTRIBUTE, Part, names_segments
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.scores import Row
from db.tables.filters import NONE

NAMED = 5  # segments that an error names


def in_segment(store: Store, data: Evidence, part: Part) -> Evidence:
    """The evidence of one segment. Labels of the rest keep their place in the draw and are in no figure, so the size of
    the segment in every stratum is estimated from the labels.

    Raises BadInput for what tells no segments apart, for labels of no sample, and for a segment without traffic in the
    sample's window or without a label.
    """
    if not names_segments(part.by):
        raise BadInput(
            f"segments cannot be told apart by {part.by!r}: name operation, model, language or attributes.NAME"
        )
    if data.sample is None:
        raise BadInput("a segment is certified on a sample of traffic: name one with --sample")
    sample = replace(data.sample, filter=part.within(data.sample.filter))
    window = replace(sample.filter, until=None, label="any")
    if not store.traces.count(window):
        raise _refuse_empty(store, data.sample.name, part)
    every = (*data.rows, *data.refused, *data.undecided)
    segments = store.traces.segments([row.pk for row in every], part.by)
    inside = {row.pk for row, segment in zip(every, segments, strict=True) if segment == part.name}

    def split(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple(row for row in rows if row.pk in inside)

    rows = split(data.rows)
    if not rows:
        raise BadInput(
            f"no label of the sample {data.sample.name!r} is of {part.by} {part.name!r}: draw a sample of it and label "
            "that, or label more of this one"
        )
    elsewhere = tuple(row for row in every if row.pk not in inside)
    return replace(
        data,
        sample=sample,
        rows=rows,
        refused=split(data.refused),
        undecided=split(data.undecided),
        part=part,
        elsewhere=elsewhere,
    )


def _refuse_empty(store: Store, sample: str, part: Part) -> BadInput:
    """The error for a segment without traffic, with the segments that there are."""
    values = [span.value for span in store.traces.values(part.by.removeprefix(ATTRIBUTE)) if span.value != NONE]
    names = ", ".join(repr(value) for value in values[:NAMED])
    if not values:
        return BadInput(f"no trace in the store says its {part.by}: log it, or name what traces say (--by)")
    return BadInput(
        f"no trace of the window of {sample!r} has {part.by} {part.name!r}: of {len(values):,} in the store, the "
        f"largest are {names}"
    )

"""What a released detector flags among stored traces, each decided by the threshold of its segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrate.thresholds.model import DetectorEntry
from calibrate.types import Segments
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.kinds import KindFigures, figures_by_kind
from db import Store
from db.scores import Row


def thresholds_of(store: Store, entry: DetectorEntry, pks: Sequence[int]) -> NDArray[np.float64]:
    """The threshold that the entry has for each of these traces."""
    return _thresholds(store, entry.threshold, entry.segments, pks)


def _thresholds(store: Store, threshold: float, segments: Segments | None, pks: Sequence[int]) -> NDArray[np.float64]:
    if segments is None:
        return np.full(len(pks), threshold)
    own = {name: each.threshold for name, each in segments.thresholds.items()}
    values = [
        own.get(name, threshold) if name is not None else threshold for name in store.traces.segments(pks, segments.by)
    ]
    return np.array(values, dtype=np.float64)


def as_released(store: Store, entry: DetectorEntry, data: Evidence) -> tuple[Evidence, float]:
    """Evidence with the threshold at which it flags what the entry does."""
    return as_decided(store, entry.threshold, entry.segments, data)


def as_decided(store: Store, threshold: float, segments: Segments | None, data: Evidence) -> tuple[Evidence, float]:
    """Evidence with the threshold at which it flags what these segments do, and `threshold` all other traffic.

    Without segments that is the evidence as it is. With them a score becomes its distance from the threshold of the
    trace's segment, and the threshold is 0: the difference of two floats is 0 only where they are equal.
    """
    if segments is None:
        return data, threshold

    def away(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        thresholds = _thresholds(store, threshold, segments, [row.pk for row in rows])
        return tuple(
            row if row.value is None else replace(row, value=row.value - float(own))
            for row, own in zip(rows, thresholds, strict=True)
        )

    return replace(data, rows=away(data.rows), undecided=away(data.undecided)), 0.0


def released_figures_by_kind(store: Store, entry: DetectorEntry, data: Evidence) -> KindFigures:
    """What a released detector finds of every kind of error, on the labels that count."""
    return figures_by_kind(store, *as_released(store, entry, data))

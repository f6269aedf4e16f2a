"""Models seen in traces: when each answered, how much of the traffic, and how often it hallucinated.

The same for prompt versions, or any attribute that traces carry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import hypot
from typing import Literal

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.prevalence_interval import prevalence_interval
from calibrate.types import Interval
from calibrate.workflow.evidence.basis import Basis, Caution, choose_basis
from calibrate.workflow.evidence.counted_labels import NOBODY, CountedLabels, count_labels
from calibrate.workflow.evidence.evidence import design_of
from calibrate.workflow.releasing.history import read_release
from db import Store
from db.tables.filters import NONE

MOST = 50  # values that are told apart: an attribute with more is no version of anything
LONG = timedelta(days=62)  # a longer time is shown in weeks


@dataclass(frozen=True, slots=True)
class Seen:
    """One model, or one value of an attribute. `share` is of all traces; `first` and `last` are None for undated ones.

    `prevalence` is the share hallucinated among its `labels` definite gold labels, weighted by the sample's design
    where they are of one. `labelled` of its traces have a verdict of any kind, whatever sample they are of. `released`:
    whether the live release was made on it; None without a release, and for attributes.
    """

    name: str
    traces: int
    share: float
    first: datetime | None
    last: datetime | None
    released: bool | None
    labels: int
    hallucinated: int
    prevalence: Interval
    labelled: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """The newest value with labels against the one before it; `difference` is newer minus older, in shares."""

    older: Seen
    newer: Seen
    difference: Interval

    @property
    def is_significant(self) -> bool:
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True, slots=True)
class NoStep:
    """Why no two values can be compared; `names` are those that first answered on the same day, newest first."""

    reason: Literal["caution", "too few labelled", "same day"]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Registry:
    """What traces say of `by`, the newest value first. `traffic` counts each value's traces by the first day of the day
    or week (`per`, UTC). `beyond` values more have the fewest traces and are left out. `version` is the live release's.
    """

    by: str
    values: tuple[Seen, ...]
    beyond: int
    per: Literal["day", "week"]
    traffic: Mapping[str, Mapping[date, int]]
    version: int | None
    sample: str | None
    caution: Caution | None
    step: Step | NoStep


def registry(store: Store, *, by: str = "model", sample: str | Sequence[str] | None = None) -> Registry:
    """Every model that traces name, or every value of the attribute `by`.

    The labels are those of a sample, or of several as one, weighted by its design, or of what `choose_basis` takes; of
    labels that do not describe the traffic no prevalence is made. Raises BadInput for an attribute that no trace
    carries, and for an unknown sample.
    """
    basis = choose_basis(store, sample)
    labels = count_labels(store, NOBODY, basis.sample)
    release = next(iter(store.releases.list()), None)
    released = set(read_release(release).data.models) if release and by == "model" else None
    spans = store.traces.values(by)
    if by != "model" and {span.value for span in spans} <= {NONE}:
        raise BadInput(f"no trace carries {by!r}; there are: {', '.join(offered(store))}")
    total = sum(span.traces for span in spans)
    value_of_label = store.traces.labelled_values(by)
    shares, labelled = _measure_prevalences(basis, labels, value_of_label), Counter(value_of_label.values())
    unlabelled = (0, 0, Interval(None))
    values = [
        Seen(
            span.value,
            span.traces,
            span.traces / total,
            span.first,
            span.last,
            None if released is None else span.value in released,
            *shares.get(span.value, unlabelled),
            labelled[span.value],
        )
        for span in spans[:MOST]
    ]
    # Undated values come last: nobody knows when they were.
    values.sort(key=lambda value: (value.first is not None, value.first and value.first.timestamp()), reverse=True)
    counts = store.traces.values_per_day(by, [value.name for value in values])
    days = {value.name: counts[value.name] for value in values if value.name in counts}
    per = _choose_period(days)
    return Registry(
        by,
        tuple(values),
        max(0, len(spans) - MOST),
        per,
        {name: _count_by_period(counts, per) for name, counts in days.items()},
        release.version if release else None,
        basis.sample.name if basis.sample else None,
        basis.caution,
        NoStep("caution") if basis.caution else _compare_newest(values),
    )


def offered(store: Store) -> list[str]:
    """What traces can be told apart by: the model, and the attributes that the newest ones carry."""
    return ["model", *(name for name in store.traces.attribute_names() if name != "model")]


def difference(newer: Interval, older: Interval) -> Interval:
    """Newer minus older share with its interval from theirs: Newcombe's (Statistics in Medicine 17, 1998, method 10)
    for Wilson intervals, and as MOVER (Zou & Donner 2008) for those of a design."""
    bounds = (newer.value, newer.low, newer.high, older.value, older.low, older.high)
    a, a_low, a_high, b, b_low, b_high = (np.nan if bound is None else bound for bound in bounds)
    figures = (a - b, a - b - hypot(a - a_low, b_high - b), a - b + hypot(a_high - a, b - b_low))
    return Interval(*(None if np.isnan(figure) else float(figure) for figure in figures))


def _choose_period(days: Mapping[str, Mapping[date, int]]) -> Literal["day", "week"]:
    every = [day for counts in days.values() for day in counts]
    return "week" if every and max(every) - min(every) > LONG else "day"


def _count_by_period(days: Mapping[date, int], per: Literal["day", "week"]) -> dict[date, int]:
    """By day, or by the Monday of the ISO week."""
    counts: Counter[date] = Counter()
    for day, n in days.items():
        counts[day if per == "day" else day - timedelta(days=day.weekday())] += n
    return dict(sorted(counts.items()))


def _measure_prevalences(
    basis: Basis, counted: CountedLabels, values: Mapping[int, str]
) -> dict[str, tuple[int, int, Interval]]:
    """(labels, hallucinated, share hallucinated) of each value, which is a domain of the sample."""
    rows = counted.rows
    labels = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    value_of_row = np.array([values[row.pk] for row in rows], dtype=object)
    design, groups = design_of(basis.drawn, rows, counted.undecided), [row.group for row in rows]
    prevalences = {}
    for name in sorted(set(value_of_row)):
        inside = value_of_row == name
        share = prevalence_interval(labels, inside=inside, design=design, groups=groups)
        # What was chosen to be labelled says nothing of how often a model hallucinates.
        share = Interval(None) if basis.caution else share
        prevalences[name] = (int(inside.sum()), int(labels[inside].sum()), share)
    return prevalences


def _compare_newest(values: Sequence[Seen]) -> Step | NoStep:
    """The newest labelled value against the one before it; `values` are newest first."""
    labelled = [value for value in values if value.labels and value.first is not None and value.name != NONE]
    if len(labelled) < 2:
        return NoStep("too few labelled")
    newer, older = labelled[:2]
    if newer.first and older.first and newer.first.date() == older.first.date():
        return NoStep("same day", (newer.name, older.name))
    return Step(older, newer, difference(newer.prevalence, older.prevalence))

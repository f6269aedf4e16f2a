"""Models seen in traces: which answered when and how much of the traffic, and how often each hallucinated. Prompt
versions alike, or any attribute that traces carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import hypot
from typing import Literal

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Interval, Sample
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.evidence import design_of
from calibrate.workflow.releasing.history import read_release
from db import Store
from db.filters import NONE
from db.scores import Config, Row

MOST = 50  # values that are told apart: an attribute with more is no version of anything
LONG = timedelta(days=62)  # a longer time is shown in weeks
NOBODY = Config(0, "", "", {}, "")  # no detector is asked: the labels alone


@dataclass(frozen=True, slots=True)
class Seen:
    """One model, or one value of an attribute. `share` is of all traces; `first` and `last` are None for undated ones.

    `prevalence` is the share hallucinated among its `labels` definite gold labels, weighted by the sample's design
    where they are of one. `released`: whether the live release was made on it; None without a release, and for
    attributes.
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


@dataclass(frozen=True, slots=True)
class Step:
    """The newest value with labels against the one before it; `difference` is newer minus older, in shares."""

    older: Seen
    newer: Seen
    difference: Interval

    @property
    def told_apart(self) -> bool:
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True)
class Registry:
    """What traces say of `by`, the newest value first. `traffic` counts each value's traces by the first day of the day
    or week (`per`, UTC). `beyond` values more have the fewest traces and are left out. `version` is the live release's.
    `step` is None where no two can be compared; `no_step` then says why.
    """

    by: str
    values: tuple[Seen, ...]
    beyond: int
    per: Literal["day", "week"]
    traffic: Mapping[str, Mapping[date, int]]
    version: int | None
    sample: str | None
    caution: str | None
    step: Step | None
    no_step: str


def registry(store: Store, *, by: str = "model", sample: str | Sequence[str] | None = None) -> Registry:
    """Every model that traces name, or every value of the attribute `by`.

    The labels are those of a sample, or of several as one, weighted by its design; without one all there are, as if
    drawn at random. Raises BadInput for an attribute that no trace carries, and for a sample that is unknown or cannot
    stand for its traffic.
    """
    drawn = loading.resolve_sample(store, sample)
    rows = loading.gold_rows(store, NOBODY, drawn)
    release = next(iter(store.releases.list()), None)
    known = set(read_release(release).data.models) if release and by == "model" else None
    found = store.traces.values(by)
    if by != "model" and {span.value for span in found} <= {NONE}:
        raise BadInput(f"no trace carries {by!r}; there are: {', '.join(offered(store))}")
    total = sum(span.traces for span in found)
    shares = _prevalences(drawn, rows, store.traces.labelled_values(by))
    nothing = (0, 0, Interval(None))
    values = [
        Seen(
            span.value,
            span.traces,
            span.traces / total,
            span.first,
            span.last,
            None if known is None else span.value in known,
            *shares.get(span.value, nothing),
        )
        for span in found[:MOST]
    ]
    # Undated values come last: nobody knows when they were.
    values.sort(key=lambda one: (one.first is not None, one.first and one.first.timestamp()), reverse=True)
    counts = store.traces.values_per_day(by, [one.name for one in values])
    days = {one.name: counts[one.name] for one in values if one.name in counts}
    per = _period(days)
    caution = loading.caution(store, drawn)
    step = "not all of these labels were drawn at random: name the samples that are meant" if caution else _step(values)
    return Registry(
        by,
        tuple(values),
        max(0, len(found) - MOST),
        per,
        {name: _in_periods(counts, per) for name, counts in days.items()},
        release.version if release else None,
        drawn.name if drawn else None,
        caution,
        step if isinstance(step, Step) else None,
        step if isinstance(step, str) else "",
    )


def offered(store: Store) -> list[str]:
    """What traces can be told apart by: the model, and the attributes that the newest ones carry."""
    return ["model", *(name for name in store.traces.attribute_names() if name != "model")]


def sentence(step: Step) -> str:
    """What the newest value changed, in words; says when the labels are too few to tell."""
    new, old, by = step.newer, step.older, step.difference
    said = f"{_said(new)}; {_said(old)}"
    if by.value is None or by.low is None or by.high is None or not step.told_apart:
        return f"{said}. These labels do not tell them apart."
    word = "more" if by.value > 0 else "fewer"
    least, most = sorted((abs(by.low), abs(by.high)))
    return f"{said}: {100 * abs(by.value):.0f} points {word} (95% certain: {100 * least:.0f} to {100 * most:.0f})."


def difference(newer: Interval, older: Interval) -> Interval:
    """Newer minus older share with its interval from theirs: Newcombe's (Statistics in Medicine 17, 1998, method 10)
    for Wilson intervals, and as MOVER (Zou & Donner 2008) for those of a design."""
    bounds = (newer.value, newer.low, newer.high, older.value, older.low, older.high)
    a, a_low, a_high, b, b_low, b_high = (np.nan if one is None else one for one in bounds)
    found = (a - b, a - b - hypot(a - a_low, b_high - b), a - b + hypot(a_high - a, b - b_low))
    return Interval(*(None if np.isnan(one) else float(one) for one in found))


def _said(one: Seen) -> str:
    share = one.prevalence.value or 0.0
    return f"{one.name} hallucinated {share:.0%} of {one.labels:,} labels"


def _period(days: Mapping[str, Mapping[date, int]]) -> Literal["day", "week"]:
    every = [day for counts in days.values() for day in counts]
    return "week" if every and max(every) - min(every) > LONG else "day"


def _in_periods(days: Mapping[date, int], per: Literal["day", "week"]) -> dict[date, int]:
    """By day, or by the Monday of the ISO week."""
    found: Counter[date] = Counter()
    for day, n in days.items():
        found[day if per == "day" else day - timedelta(days=day.weekday())] += n
    return dict(sorted(found.items()))


def _prevalences(
    drawn: Sample | None, rows: Sequence[Row], values: Mapping[int, str]
) -> dict[str, tuple[int, int, Interval]]:
    """(labels, hallucinated, share hallucinated) of each value.

    A value is a domain of the sample: what flags exactly its traces has, as its precision, the share hallucinated
    among them, so the interval is the one of a sweep at that point (Cochran 1977, section 5A.14).
    """
    labels = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    here = np.array([values[row.pk] for row in rows], dtype=object)
    design, groups = design_of(drawn, rows, ()), [row.group for row in rows]
    found = {}
    for name in sorted(set(here)):
        inside = here == name
        share = figures(sweep(labels, inside.astype(float), design=design, groups=groups), 1.0).precision
        found[name] = (int(inside.sum()), int(labels[inside].sum()), share)
    return found


def _step(values: Sequence[Seen]) -> Step | str:
    """`values` are newest first. What is missing, in words, where no two can be compared."""
    known = [one for one in values if one.labels and one.first is not None and one.name != NONE]
    if len(known) < 2:
        return "once traces of two of them are labelled, this says whether the newer one hallucinates less"
    newer, older = known[:2]
    if newer.first and older.first and newer.first.date() == older.first.date():
        return f"neither is the newer one: {newer.name} and {older.name} first answered on the same day"
    return Step(older, newer, difference(newer.prevalence, older.prevalence))

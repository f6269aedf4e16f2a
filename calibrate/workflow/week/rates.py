"""How often the application hallucinated, week by week, by all labels that describe the traffic.

A week is a domain of all samples together, so a week that no sample covers has no rate, and one that two cover has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.prevalence_interval import prevalence_interval
from calibrate.stats.labels.undecided import Reach, settle
from calibrate.stats.sweep.design import Bools, Design, Floats
from calibrate.types import Interval, Sample, TraceFilter
from calibrate.workflow.evidence.basis import Caution, choose_basis
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.evidence.evidence import design_of
from calibrate.workflow.evidence.prevalence import weights_of
from calibrate.workflow.upgrade.models_seen import Step, difference, offered, registry
from db import Store
from db.scores import Row
from db.tables.filters import NONE
from db.traces import ValueSpan

WEEKS = 12
MOST = 4  # values that are told apart


@dataclass(frozen=True, slots=True)
class WeekRate:
    """The week that begins on `monday` (UTC): its traffic in `traces`, and what its labels say of that.

    `rate` is the share hallucinated by the definite `labels`, weighted as they were drawn, with a 95% interval.
    `settled` is how far it could go with the `undecided` labels settled, all clean to all hallucinated; None where none
    is undecided.
    """

    monday: date
    traces: int
    labels: int
    hallucinated: int
    undecided: int
    rate: Interval
    settled: Reach | None


@dataclass(frozen=True, slots=True)
class Series:
    """The weeks with labels, oldest first, of the traces that have this `value` of what the rates are by; None: of all.

    `change` is the newest week minus the one before it, in shares; None with fewer than two weeks.
    """

    value: str | None
    weeks: tuple[WeekRate, ...]
    change: Interval | None

    @property
    def labels(self) -> int:
        return sum(week.labels for week in self.weeks)


@dataclass(frozen=True)
class Rates:
    """The rates `by` model, operation or an attribute (None: of all traces).

    Values that the newest weeks have come first, of these the newest, of equals the one with most labels; `beyond`
    values more are left out. `step` is the newest value against the one before it, of all labels; None where neither is
    newer. `undated` labels are of no week. With a `caution` the labels do not describe the traffic, and no week has a
    rate.
    """

    by: str | None
    series: tuple[Series, ...]
    beyond: int
    undated: int
    sample: str | None
    caution: Caution | None
    step: Step | None = None


def weekly_rates(store: Store, *, by: str | None = None, weeks: int = WEEKS) -> Rates:
    """Estimate the share hallucinated of each of the last `weeks` that have labels, of all traces or by a value.

    Raises BadInput for an attribute that no trace carries.
    """
    by = check_by(store, by)
    basis = choose_basis(store, None)
    name = basis.sample.name if basis.sample else None
    if basis.caution:
        return Rates(by, (), 0, 0, name, basis.caution)
    labels = _load(store, basis.drawn, by)
    mondays = sorted({monday for monday in labels.mondays if monday is not None})[-weeks:]
    spans = {span.value: span for span in store.traces.values(by)} if by else {}
    traffic = _count_traffic(store, by, mondays, list(spans))
    counts = Counter(labels.values)
    values = sorted(counts, key=lambda value: (_recency(spans.get(value or "")), -counts[value], str(value)))
    series = [_make_series(labels, value, mondays, traffic.get(value, Counter())) for value in values]
    series = [each for each in series if each.weeks]
    undated = sum(monday is None for monday in labels.mondays)
    step = registry(store, by=by).step if by and len(values) > 1 else None
    return Rates(
        by,
        tuple(series[:MOST]),
        max(0, len(series) - MOST),
        undated,
        name,
        None,
        step if isinstance(step, Step) else None,
    )


def _recency(span: ValueSpan | None) -> tuple[int, int]:
    """Sorts values by the last week that has them, then by the first, both newest first; undated ones last."""
    if span is None or span.first is None or span.last is None:
        return 0, 0
    first, last = (_monday(moment.astimezone(UTC).date()).toordinal() for moment in (span.first, span.last))
    return -last, -first


def check_by(store: Store, by: str | None) -> str | None:
    """What `by` is called in the store; `attributes.NAME` is as good as the bare name of an attribute.

    Raises BadInput for an attribute that no trace carries.
    """
    if by is None or by in ("model", "operation"):
        return by
    name = by.removeprefix("attributes.")
    if not name or {span.value for span in store.traces.values(name)} <= {NONE}:
        raise BadInput(f"no trace carries {by!r}; there are: model, operation, {', '.join(offered(store)[1:]) or '-'}")
    return name


@dataclass(frozen=True)
class _Labels:
    """The labels that count, definite ones first: the week and the value of each, and what it stands for."""

    rows: tuple[Row, ...]
    is_open: Bools
    hallucinated: Bools
    weights: Floats
    design: Design | None
    mondays: tuple[date | None, ...]
    values: tuple[str | None, ...]

    def measure(self, inside: Bools, monday: date, traces: int) -> WeekRate:
        """The rate of a part of the traffic, which is a domain of the samples."""
        definite = ~self.is_open
        y = self.hallucinated[definite]
        groups = [row.group for row in self.rows[: len(y)]]
        n_open = int(np.count_nonzero(inside & self.is_open))
        settled = settle(self.hallucinated[inside], self.is_open[inside], weights=self.weights[inside]).prevalence
        return WeekRate(
            monday,
            traces,
            int(np.count_nonzero(inside & definite)),
            int(np.count_nonzero(inside & definite & self.hallucinated)),
            n_open,
            prevalence_interval(y, inside=inside[definite], design=self.design, groups=groups),
            settled if n_open else None,
        )


def _load(store: Store, drawn: Sample | None, by: str | None) -> _Labels:
    counted = count_labels(store, NOBODY, drawn)
    rows = (*counted.rows, *counted.undecided)
    value_of = store.traces.labelled_values(by) if by else {}
    return _Labels(
        rows,
        np.arange(len(rows)) >= len(counted.rows),
        np.array([row.gold == "hallucinated" for row in rows], dtype=bool),
        weights_of(drawn, rows),
        design_of(drawn, counted.rows, counted.undecided),
        tuple(None if row.timestamp is None else _monday(row.timestamp.astimezone(UTC).date()) for row in rows),
        tuple(value_of.get(row.pk) for row in rows),
    )


def _make_series(labels: _Labels, value: str | None, mondays: Sequence[date], traffic: Mapping[date, int]) -> Series:
    has_value = np.array([each == value for each in labels.values], dtype=bool)
    weeks = []
    for monday in mondays:
        inside = has_value & np.array([each == monday for each in labels.mondays], dtype=bool)
        if inside.any():
            weeks.append(labels.measure(inside, monday, traffic.get(monday, 0)))
    rates = [week.rate for week in weeks if week.labels]
    return Series(value, tuple(weeks), difference(*rates[:-3:-1]) if len(rates) > 1 else None)


def _count_traffic(
    store: Store, by: str | None, mondays: Sequence[date], values: Sequence[str]
) -> dict[str | None, Counter[date]]:
    """Traces a week, of each of the values."""
    if not mondays:
        return {}
    days: dict[str | None, Mapping[date, int]] = {}
    if by is None:
        per_day = store.traces.per_day(TraceFilter(since=start_of(mondays[0]), undated=False))
        days[None] = {date.fromisoformat(day): n for day, n in per_day.items()}
    else:
        days.update(store.traces.values_per_day(by, values))
    traffic: dict[str | None, Counter[date]] = {}
    for value, counts in days.items():
        weeks = traffic.setdefault(value, Counter())
        for day, n in counts.items():
            weeks[_monday(day)] += n
    return traffic


def start_of(monday: date) -> datetime:
    """The moment at which a week begins, UTC."""
    return datetime.combine(monday, time(), UTC)


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())

"""Tune: the labelled scores of a detector, their sweep, and the operating point a policy chooses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.flagging import flags
from calibrate.stats.design import Design
from calibrate.stats.policies import Policy, choose
from calibrate.stats.sweep import Sweep, sweep
from calibrate.steps.detect import config_id, no_sample
from calibrate.thresholds.model import label_set_digest
from calibrate.types import FlagWhen, OperatingPoint, Sample, TraceFilter
from db import Store
from db.scores import Config, Row
from db.tables import LabelRow, ScoreRow


@dataclass(frozen=True)
class Histogram:
    """Labels counted by score: bin i holds edges[i] <= score < edges[i + 1], the last one its upper edge too."""

    edges: NDArray[np.float64]
    clean: NDArray[np.int64]
    hallucinated: NDArray[np.int64]


@dataclass(frozen=True)
class Nearby:
    """The labelled traces whose scores are nearest to a threshold, nearest first."""

    flagged: tuple[Row, ...]
    passed: tuple[Row, ...]


@dataclass(frozen=True)
class Labelled:
    """The definite gold labels of a sample (or of the whole store) beside one detector configuration's scores.

    `rows` are in labelling order. Figures are weighted by the sample's design; labels that belong to no sample are
    taken as they are, as if drawn at random. Refusals are in no figure: `refused` holds them.
    """

    config: Config
    flag_when: FlagWhen
    sample: Sample | None
    rows: tuple[Row, ...]
    refused: tuple[Row, ...] = ()

    @cached_property
    def labels(self) -> NDArray[np.bool_]:
        return np.array([row.gold == "hallucinated" for row in self.rows], dtype=bool)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        return np.array([np.nan if row.value is None else row.value for row in self.rows], dtype=float)

    @cached_property
    def sweep(self) -> Sweep:
        design = design_of(self.sample, self.rows, self.refused)
        return sweep(self.labels, self.scores, design=design, flag_when=self.flag_when)

    @property
    def groups(self) -> list[str | None]:
        """The sources a trace shares with others; None for a trace on its own."""
        return [row.group for row in self.rows]

    def histogram(self, bins: int = 40) -> Histogram:
        """The scores by label in bins of equal width. Labels are counted, not weighted; traces without a score are left
        out. Without any score the histogram has no bins."""
        values, labels = self.scores, self.labels
        there = ~np.isnan(values)
        if not there.any():
            nothing = np.zeros(0, dtype=np.int64)
            return Histogram(np.zeros(1), nothing, nothing)
        edges = np.histogram_bin_edges(values[there], bins=bins)
        clean, _ = np.histogram(values[there & ~labels], bins=edges)
        hallucinated, _ = np.histogram(values[there & labels], bins=edges)
        return Histogram(edges, clean, hallucinated)

    def nearby(self, threshold: float, *, most: int = 3) -> Nearby:
        """Up to `most` traces on each side of the threshold."""
        scored = [(row.value, row) for row in self.rows if row.value is not None]
        scored.sort(key=lambda item: abs(item[0] - threshold))
        sides: dict[bool, list[Row]] = {True: [], False: []}
        for value, row in scored:
            sides[flags(value, threshold, self.flag_when)].append(row)
        return Nearby(tuple(sides[True][:most]), tuple(sides[False][:most]))

    @property
    def reasons(self) -> dict[str, int]:
        """Why traces have no score, with counts, most first; "not run yet" where the detector was not asked."""
        counts: dict[str, int] = {}
        for row in self.rows:
            if row.value is None:
                why = "not run yet" if row.status is None else f"{row.status}: {row.reason}"
                counts[why] = counts.get(why, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def digest(self) -> str:
        """Names the label set: the same labels on the same contents have the same digest."""
        return label_set_digest((row.content_hash, str(row.gold)) for row in self.rows)


def labelled(
    store: Store,
    name: str,
    *,
    sample: str | None = None,
    params: Mapping[str, Any] | None = None,
    config: Config | None = None,
) -> Labelled:
    """The labels and scores of a detector.

    `config` names one of its stored configurations, `params` the one with these parameters; without either it is the
    one with the parameters it ships with, or where those were never run the one that was run last. Raises BadInput for
    an unknown detector or sample, and for a detector that was never run, with what to do.
    """
    cls = registry.get(name)
    drawn = sample_of(store, sample)
    config = config or config_of(store, name, params)
    rows = rows_of(store, config, drawn)
    refused = tuple(row for row in rows if row.status == "refusal")
    return Labelled(config, cls.flag_when, drawn, tuple(row for row in rows if row.status != "refusal"), refused)


def sample_of(store: Store, name: str | None) -> Sample | None:
    """The sample of this name, None for every label there is. Raises BadInput when there is none such."""
    if name is None:
        return None
    drawn = store.samples.get(name)
    if drawn is None:
        raise no_sample(store, name)
    return drawn


def rows_of(store: Store, config: Config, sample: Sample | None) -> list[Row]:
    """The definite gold labels of a sample, or all, beside one configuration's scores, in labelling order."""
    return store.scores.labelled(config.id, sample_id=sample.id if sample else None)


def design_of(sample: Sample | None, rows: Sequence[Row], refused: Sequence[Row]) -> Design | None:
    """How the rows were drawn, as the estimates need it; None for labels of no sample.

    Each stratum holds its traffic without refusals, whose share is taken from the labels.
    """
    if sample is None or not rows:
        return None
    kept, left = (Counter(row.stratum for row in some) for some in (rows, refused))
    share = {name: kept[name] / (kept[name] + left[name]) for name in left}
    population = {name: round(size * share.get(name, 1.0)) for name, (size, _) in sample.strata.items()}
    return Design.of([row.stratum for row in rows], population)


def runs_of(store: Store) -> dict[str, list[Config]]:
    """Every known detector that has scores, with its configurations: the one that is meant unless another is named
    comes last, before it the one used last."""
    found = {name: store.scores.configs(name) for name in registry.names()}
    return {name: sorted(configs, key=lambda one: one == meant(configs)) for name, configs in found.items() if configs}


def meant(configs: Sequence[Config]) -> Config:
    """Of a detector's configurations, in the order they were used: the latest with the parameters it ships with, or
    where those were never run the one that was run last."""
    usual = registry.config_of(registry.make(configs[-1].name))
    return next((one for one in reversed(configs) if dict(one.params) == usual), configs[-1])


def revision(store: Store, config: Config) -> tuple[Any, ...]:
    """Changes when a label or a score of this configuration does: the key under which `labelled` may be kept."""
    scores = select(func.count(), func.max(ScoreRow.scored_at)).where(ScoreRow.config_id == config.id)
    with store.engine.connect() as connection:
        count, at = connection.execute(scores).one()
        return connection.scalar(select(func.max(LabelRow.id))), count, at


def point_of(data: Labelled, policy: Policy) -> OperatingPoint:
    """The operating point that the policy chooses. Raises BadInput where labels do not allow a choice."""
    return replace(choose(data.sweep, policy), detector=data.config.name)


def save_point(store: Store, data: Labelled, point: OperatingPoint, *, by: str, now: datetime) -> None:
    """Keeps a chosen point with what it was measured on; it is then on offer for release."""
    where = data.sample.filter if data.sample else TraceFilter()
    about = {
        "sample": data.sample.name if data.sample else None,
        "design": data.sample.design if data.sample else None,
        "label_set_digest": data.digest(),
        "n": len(data.rows),
        "positives": int(data.labels.sum()),
        "window": [where.since and where.since.isoformat(), where.until and where.until.isoformat()],
        "models": sorted({row.model for row in data.rows if row.model}),
        "labels": sorted((row.content_hash, row.gold) for row in data.rows),
    }
    store.points.save(
        point.detector,
        config_id=data.config.id,
        sample_id=data.sample.id if data.sample else None,
        point=asdict(point),
        data=about,
        chosen_by=by,
        now=now,
    )


def traffic_per_day(store: Store, sample: Sample | None) -> float | None:
    """Traces a day in the sample's window (or the whole store), for "flags a day". None for undated traffic."""
    where = replace(sample.filter if sample else TraceFilter(), undated=False, label="any")
    days = store.traces.per_day(where)
    if not days:
        return None
    first, last = (datetime.fromisoformat(day) for day in (min(days), max(days)))
    return sum(days.values()) / ((last - first).days + 1)


def config_of(store: Store, name: str, params: Mapping[str, Any] | None = None) -> Config:
    """The configuration that is meant: the one with these parameters, or else `meant`. Raises BadInput where the
    detector is unknown or was never run."""
    if params:
        return store.scores.get_config(config_id(store, registry.make(name, params)))
    configs = store.scores.configs(name)
    if not configs:
        raise BadInput(f"{name} has no scores yet: run it first (`detect {name} --labelled`, or the Detect page)")
    return meant(configs)

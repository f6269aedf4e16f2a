"""Tune: the labelled scores of a detector, their sweep, and the operating point a policy chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import func, select

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.agreement import ENRICHED
from calibrate.stats.elbow import Elbow, elbow_spread, knee
from calibrate.stats.policies import Policy, Pool, choose, choose_bounded
from calibrate.steps import merging
from calibrate.steps.detect import config_id, no_sample
from calibrate.steps.labelled import Labelled as Labelled
from calibrate.steps.labelled import design_of as design_of
from calibrate.types import OperatingPoint, Sample, Strength, TraceFilter
from db import Store
from db.scores import Config, Row
from db.tables import LabelRow, ScoreRow

DAY = timedelta(days=1)
EVEN = ("random", ENRICHED)  # designs whose labels, pooled, are no less like the traffic than before
NOT_RUN = 0.05  # the share of a window without a score above which its flags are not counted


def labelled(
    store: Store,
    name: str,
    *,
    sample: str | Sequence[str] | None = None,
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


def sample_of(store: Store, name: str | Sequence[str] | None) -> Sample | None:
    """The sample of this name, or several as one; None for every label there is. Raises BadInput when there is none
    such, or they cannot be merged."""
    names = [name] if isinstance(name, str) else list(dict.fromkeys(name or ()))
    samples = []
    for one in names:
        drawn = store.samples.get(one)
        if drawn is None:
            raise no_sample(store, one)
        samples.append(drawn)
    return merging.merged(store, samples) if len(samples) > 1 else next(iter(samples), None)


def rows_of(store: Store, config: Config, sample: Sample | None) -> list[Row]:
    """The definite gold labels of a sample, or all, beside one configuration's scores, in labelling order."""
    if sample is None:
        return store.scores.labelled(config.id)
    parts = merging.parts_of(store, sample)
    if parts == [sample]:
        return store.scores.labelled(config.id, sample_id=sample.id)
    found = [(part, store.scores.labelled(config.id, sample_id=part.id)) for part in parts]
    return merging.once(merging.told_apart(store, found))


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


def told_apart(configs: Sequence[Config]) -> list[str]:
    """Each configuration by what differs among them: `variant plain`, `version 2`, `revision prompt-1f0c2d3e`."""
    parts = [c.revision.split("+") for c in configs]
    own = [" + ".join(part for part in mine if not all(part in others for others in parts)) for mine in parts]
    facts = [
        {"version": c.version, "revision": mine or "ours", **c.params} for c, mine in zip(configs, own, strict=True)
    ]
    keys = sorted({key for fact in facts for key in fact})
    differ = [key for key in keys if len({str(fact.get(key)) for fact in facts}) > 1]
    return [", ".join(f"{key} {fact.get(key, 'none')}" for key in differ) for fact in facts]


def caution(store: Store, sample: Sample | None) -> str | None:
    """What to know of labels that are taken as if drawn at random: that they were not."""
    if sample is not None:
        return None
    uneven = [one for one in store.samples.list() if one.design not in EVEN]
    counts = {one.name: _definite(store.labels.gold_counts(one.id)) for one in uneven}
    chosen, every = sum(counts.values()), _definite(store.labels.gold_counts())
    if not chosen:
        return None
    designs = ", ".join(sorted({one.design for one in uneven if counts[one.name]}))
    return (
        f"These labels are taken as if drawn at random, but {min(chosen, every):,} of {every:,} were not "
        f"(designs: {designs}): shares of the traffic, recall and flag rate among them, may be far off. Name the "
        "samples that are meant"
    )


def _definite(counts: Mapping[str, int]) -> int:
    return counts.get("clean", 0) + counts.get("hallucinated", 0)


def revision(store: Store, config: Config) -> tuple[Any, ...]:
    """Changes when a label or a score of this configuration does: the key under which `labelled` may be kept."""
    scores = select(func.count(), func.max(ScoreRow.scored_at)).where(ScoreRow.config_id == config.id)
    with store.engine.connect() as connection:
        count, at = connection.execute(scores).one()
        return connection.scalar(select(func.max(LabelRow.id))), count, at


def point_of(
    data: Labelled, policy: Policy, *, strength: Strength = "measured", pool: Pool | None = None
) -> OperatingPoint:
    """The operating point that the policy chooses, measured or bounded; `pool` is the traffic, for `alerts`.

    Raises BadInput where labels do not allow a choice, and for `certified`, which takes labels drawn for it.
    """
    if strength == "certified":
        raise BadInput(
            f"labels at hand cannot certify a threshold: `certify {data.config.name}`, or Certified on the Tune page, "
            "draws fresh ones for it"
        )
    if strength == "bounded":
        return choose_bounded(data.sweep, policy, detector=data.config.name)
    return choose(data.sweep, policy, detector=data.config.name, pool=pool)


def elbow_of(data: Labelled) -> Elbow:
    """How steady the elbow of these labels is. The same labels, the same answer."""
    spread = elbow_spread(
        data.labels,
        data.scores,
        rng=np.random.default_rng(0),
        design=data.design,
        groups=data.groups if any(data.groups) else None,
        flag_when=data.flag_when,
    )
    return Elbow(spread, knee(data.sweep))


def traffic(store: Store, data: Labelled) -> Pool:
    """The detector's scores of the traffic in the sample's window, or in the store, and how many traces come a day.

    Raises BadInput while it was not run on nearly all of it: what was chosen to be labelled is not like the rest.
    """
    where = replace(data.sample.filter if data.sample else TraceFilter(), label="any")
    total, waiting = store.traces.count(where), len(store.traces.lacking(where, [data.config.id]))
    if waiting > NOT_RUN * total:
        raise BadInput(
            f"{data.config.name} was run on {total - waiting:,} of the window's {total:,} traces, too few to say what "
            f"it flags a day: run it on all (`detect {data.config.name} --all`, or the Detect page)"
        )
    found = np.array([value for value in store.scores.window(data.config.id, where) if value is not None])
    # What could not be scored, and refusals, are traffic that is not flagged.
    scores = np.append(found, np.full(max(0, total - waiting - len(found)), np.nan))
    return Pool(scores, traffic_per_day(store, data.sample))


def save_point(store: Store, data: Labelled, point: OperatingPoint, *, by: str, now: datetime) -> None:
    """Keeps a chosen point with what it was measured on; it is then on offer for release."""
    where = data.sample.filter if data.sample else TraceFilter()
    flagged_only = set() if data.sample else store.labels.of_flagged_only()
    about = {
        "sample": data.sample.name if data.sample else None,
        "design": data.sample.design if data.sample else None,
        "label_set_digest": data.digest(),
        "n": len(data.rows),
        "positives": int(data.labels.sum()),
        "window": [where.since and where.since.isoformat(), where.until and where.until.isoformat()],
        # Of a model of which only flagged answers are labelled, nothing is known of the rest.
        "models": sorted({row.model for row in data.rows if row.model and row.pk not in flagged_only}),
        "labels": sorted((row.content_hash, row.gold) for row in data.rows),
    }
    store.points.save(
        point.detector,
        config_id=data.config.id,
        sample_id=data.sample.id or None if data.sample else None,  # several samples as one have no id
        point=asdict(point),
        data=about,
        chosen_by=by,
        now=now,
    )


def traffic_per_day(store: Store, sample: Sample | None) -> float | None:
    """Traces a day in the sample's window (or the whole store), for "flags a day": over the time from the first to the
    last, as the first and the last date are seldom whole days. Within one day, what came. None for undated traffic."""
    where = replace(sample.filter if sample else TraceFilter(), undated=False, label="any")
    found = store.traces.span(where)
    if found is None:
        return None
    n, first, last = found
    # n traces have n - 1 pauses between them.
    return n / max(1.0, (last - first) / DAY * n / max(1, n - 1))


def config_of(store: Store, name: str, params: Mapping[str, Any] | None = None) -> Config:
    """The configuration that is meant: the one with these parameters, or else `meant`. Raises BadInput where the
    detector is unknown or was never run."""
    if params:
        return store.scores.get_config(config_id(store, registry.make(name, params)))
    registry.get(name)
    configs = store.scores.configs(name)
    if not configs:
        raise BadInput(f"{name} has no scores yet: run it first (`detect {name} --labelled`, or the Detect page)")
    return meant(configs)

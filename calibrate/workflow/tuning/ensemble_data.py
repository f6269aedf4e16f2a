"""What an ensemble is made from: labelled scores side by side, the traffic's scores, what each detector costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import sqlalchemy as sa
from sqlalchemy import func, select
from sqlalchemy.orm import aliased

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.ensembles.cascade import Price
from calibrate.stats.ensembles.combine import Material
from calibrate.stats.sweep.design import Floats
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.score_matrix import ScoreMatrix, load_score_matrix
from db import Store
from db.scores import Config
from db.tables import ScoreRow, TraceRow
from db.traces import conditions

ENOUGH = 0.8
"""Share of the window that every detector must have been asked about for a cut to be read from it."""
MOST = 200_000  # traces of the window that a cut is read from; further ones would not move it
LOOKED_AT = 5_000  # scores that a price is taken from
SLOW = 10  # times as slow as the others together: worth a filter


@dataclass(frozen=True)
class Traffic:
    """The window's scores, one array per detector, NaN for none; `n` of its `window` traces, refusals left out."""

    scores: Mapping[str, Floats]
    n: int
    window: int


@dataclass(frozen=True)
class Gathered:
    """`from_labels`: too little of the traffic has been scored, so that the labels, weighted, stand for it."""

    data: ScoreMatrix
    material: Material
    traffic: Traffic
    from_labels: bool


def gather(store: Store, names: Sequence[str], *, sample: str | None) -> Gathered:
    """Raises BadInput for what no ensemble can be made of: fewer than two detectors, one that scored nothing, labels
    of one kind."""
    wanted = sorted({registry.get(name).name for name in names})
    if len(wanted) < 2:
        raise BadInput("an ensemble needs at least two detectors: name another")
    data = load_score_matrix(store, wanted, sample=sample)
    _check(data)
    traffic = read_traffic(store, data.configs, data.sample)
    few = traffic.n < ENOUGH * traffic.window or not traffic.n
    material = Material(
        labels=data.labels,
        weights=np.asarray(data.weights, dtype=np.float64),
        groups=data.groups,
        design=data.design,
        scores=data.scores,
        traffic=data.scores if few else traffic.scores,
        traffic_weights=np.asarray(data.weights, dtype=np.float64) if few else np.ones(traffic.n),
        flag_when=data.flag_when,
    )
    return Gathered(data, material, traffic, few)


def read_traffic(store: Store, configs: Mapping[str, Config], sample: Sample | None) -> Traffic:
    """The traces of the sample's window (all, without a sample) that every detector was asked about, in key order.

    Read in a stream; of more than MOST traces every second, third ... one.
    """
    where = replace(sample.filter, label="any") if sample else TraceFilter()
    window = store.traces.count(where)
    query = select(TraceRow.id).where(*conditions(where))
    if (every := -(-window // MOST)) > 1:
        query = query.where(TraceRow.id % every == 0)
    for config in configs.values():
        scores = aliased(ScoreRow)
        match = sa.and_(scores.config_id == config.id, scores.content_hash == TraceRow.content_hash)
        query = query.join(scores, match).add_columns(scores.value, scores.status)
    blocks, refusals = [], 0
    with store.engine.connect() as connection:
        rows = connection.execution_options(yield_per=10_000).execute(query.order_by(TraceRow.id))
        for block in rows.partitions():
            kept = [row[1::2] for row in block if "refusal" not in row[2::2]]
            refusals += len(block) - len(kept)
            blocks.append(np.array(kept, dtype=np.float64).reshape(len(kept), len(configs)))
    values = np.concatenate([np.empty((0, len(configs))), *blocks])
    columns = {name: values[:, place].copy() for place, name in enumerate(configs)}
    return Traffic(columns, len(values), -(-window // every) - refusals if window else 0)


def prices(store: Store, configs: Mapping[str, Config]) -> dict[str, Price]:
    """What one trace costs each detector: medians over the newest scores. Answers from the cache cost nothing and are
    not counted."""
    found = {}
    for name, config in configs.items():
        query = select(ScoreRow.seconds, ScoreRow.usage).where(ScoreRow.config_id == config.id)
        query = query.where(ScoreRow.status == "scored").order_by(ScoreRow.scored_at.desc()).limit(LOOKED_AT)
        with store.engine.connect() as connection:
            rows = connection.execute(query).tuples().all()
        asked = [usage for _, usage in rows if usage and usage[0] > usage[1]]
        dollars = [usage[4] for usage in asked if usage[4] is not None]
        found[name] = Price(
            name,
            len(rows),
            calls=median(usage[0] for usage in asked) if asked else None,
            dollars=median(dollars) if dollars else None,
            seconds=median(seconds for seconds, _ in rows) if rows else None,
        )
    return found


def costliest(found: Mapping[str, Price]) -> Price:
    """By dollars, then calls, then seconds."""
    return max(sorted(found.values(), key=lambda one: one.detector), key=_cost)


def worth_a_filter(found: Mapping[str, Price]) -> bool:
    """Whether the costliest asks a chat endpoint that the cheapest does not, or is far slower than the others."""
    most = costliest(found)
    others = [one for one in found.values() if one is not most]
    if most.calls is not None:
        return any(one.calls is None for one in others)
    return (most.seconds or 0.0) > max(0.01, SLOW * sum(one.seconds or 0.0 for one in others))


def revision(store: Store, configs: Sequence[Config]) -> tuple[object, ...]:
    """Changes when a trace or one of these scores does; labels have `tune.revision`."""
    scores = select(func.count(), func.max(ScoreRow.scored_at)).where(ScoreRow.config_id.in_([c.id for c in configs]))
    with store.engine.connect() as connection:
        return (connection.scalar(select(func.max(TraceRow.id))), *connection.execute(scores).one())


def _cost(price: Price) -> tuple[float, float, float]:
    return price.dollars or 0.0, price.calls or 0.0, price.seconds or 0.0


def _check(data: ScoreMatrix) -> None:
    n, positives = len(data.rows), int(data.labels.sum())
    if not n:
        raise BadInput("no labels: label some traces first; an ensemble is judged by hallucinated and clean ones")
    if positives in (0, n):
        kind = "hallucinated" if positives else "clean"
        raise BadInput(f"all {n} labels are {kind}: an ensemble is judged by hallucinated and clean ones; label more")
    for name, scores in data.scores.items():
        if not np.isfinite(scores).any():
            raise BadInput(f"{name} could score none of the {n} labelled traces: leave it out")

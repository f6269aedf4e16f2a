"""The data that an ensemble is fitted to: labelled scores, the traffic's scores, and what each detector costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.ensembles.cascade import Price
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.sweep.design import Floats
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.evidence.basis import must_describe_traffic
from calibrate.workflow.evidence.score_matrix import ScoreMatrix, load_score_matrix
from db import Store
from db.scores import Config

ENOUGH = 0.8
"""Share of the window that every detector must have been asked about for a cut to be read from it."""
COVERED = 0.5
"""Share of the traffic that a detector must be able to score to be picked for an ensemble."""
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
    training: TrainingData
    traffic: Traffic
    from_labels: bool


def candidate_names(store: Store, *, sample: str | None, also: str = "") -> list[str]:
    """The detectors that an ensemble can be picked from: those that score at least half of the traffic, by the labelled
    traces, whatever their verdicts; `also` whatever it scores."""
    data = load_score_matrix(store, sample=sample)
    if not len(data.rows):
        return list(data.scores)
    covered = {name: np.average(np.isfinite(scores), weights=data.weights) for name, scores in data.scores.items()}
    return [name for name, share in covered.items() if share >= COVERED or name == also]


def gather(store: Store, names: Sequence[str], *, sample: str | None) -> Gathered:
    """Load the data of an ensemble.

    Raises BadInput for fewer than two detectors, one that scored nothing, and labels of one kind.
    """
    detector_names = sorted({registry.get(name).name for name in names})
    if len(detector_names) < 2:
        raise BadInput("an ensemble needs at least two detectors: name another")
    data = load_score_matrix(store, detector_names, sample=sample)
    _check(data)
    traffic = read_traffic(store, data.configs, data.sample)
    few = traffic.n < ENOUGH * traffic.window or not traffic.n
    training = TrainingData(
        labels=data.labels,
        weights=np.asarray(data.weights, dtype=np.float64),
        groups=data.groups,
        design=data.design,
        scores=data.scores,
        traffic=data.scores if few else traffic.scores,
        traffic_weights=np.asarray(data.weights, dtype=np.float64) if few else np.ones(traffic.n),
        flag_when=data.flag_when,
    )
    return Gathered(data, training, traffic, few)


def read_traffic(store: Store, configs: Mapping[str, Config], sample: Sample | None) -> Traffic:
    """The traces of the sample's window (all, without a sample) that every detector was asked about, in key order.

    Read in a stream; of more than MOST traces every second, third ... one.
    """
    where = replace(sample.filter, label="any") if sample else TraceFilter()
    window = store.traces.count(where)
    every = max(1, -(-window // MOST))
    matrix = store.coverage.side_by_side([config.id for config in configs.values()], where, every=every)
    columns = {name: matrix.scores[:, place].copy() for place, name in enumerate(configs)}
    return Traffic(columns, len(matrix.scores), -(-window // every) - matrix.refusals)


def prices(store: Store, configs: Mapping[str, Config]) -> dict[str, Price]:
    """Measure what one trace costs each detector: medians over the newest scores.

    Answers from the cache cost nothing and are not counted.
    """
    price_of = {}
    for name, config in configs.items():
        costs = store.scores.newest_costs(config.id, limit=LOOKED_AT)
        paid = [cost.usage for cost in costs if cost.usage and cost.usage.requests > cost.usage.cached]
        dollars = [usage.cost for usage in paid if usage.cost is not None]
        price_of[name] = Price(
            name,
            len(costs),
            calls=median(usage.requests for usage in paid) if paid else None,
            dollars=median(dollars) if dollars else None,
            seconds=median(cost.seconds for cost in costs) if costs else None,
        )
    return price_of


def costliest(price_of: Mapping[str, Price]) -> Price:
    """Find the highest price: by dollars, then calls, then seconds."""
    return max(sorted(price_of.values(), key=lambda price: price.detector), key=_sort_key)


def worth_a_filter(price_of: Mapping[str, Price]) -> bool:
    """Whether the costliest asks a chat endpoint that the cheapest does not, or is far slower than the others."""
    most = costliest(price_of)
    others = [price for price in price_of.values() if price is not most]
    if most.calls is not None:
        return any(price.calls is None for price in others)
    return (most.seconds or 0.0) > max(0.01, SLOW * sum(price.seconds or 0.0 for price in others))


def _sort_key(price: Price) -> tuple[float, float, float]:
    return price.dollars or 0.0, price.calls or 0.0, price.seconds or 0.0


def _check(data: ScoreMatrix) -> None:
    must_describe_traffic(data.caution)
    n, positives = len(data.rows), int(data.labels.sum())
    if not n:
        raise BadInput("no labels: label some traces first; an ensemble is judged by hallucinated and clean ones")
    if positives in (0, n):
        kind = "hallucinated" if positives else "clean"
        raise BadInput(f"all {n} labels are {kind}: an ensemble is judged by hallucinated and clean ones; label more")
    for name, scores in data.scores.items():
        if not np.isfinite(scores).any():
            raise BadInput(f"{name} could score none of the {n} labelled traces: leave it out")

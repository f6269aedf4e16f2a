"""What a cheap filter before an expensive detector saves, and what it costs in recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.stats.ensembles import combine
from calibrate.stats.ensembles.nested_cv import apply_rule
from calibrate.stats.ensembles.performance import measure_performance
from calibrate.stats.ensembles.rules import Cascade, Rule
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.types import Interval

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Price:
    """What one trace costs an expensive detector: median calls of a chat endpoint, US dollars and seconds. None where
    it is not known; `n` scores were looked at."""

    detector: str
    n: int
    calls: float | None
    dollars: float | None
    seconds: float | None


@dataclass(frozen=True)
class Step:
    """A cascade that asks the expensive detector about `traces` of 1,000, and its recall at the budget.

    `calls` and `dollars` are for those 1,000 traces too; None where the price is not known.
    """

    traces: float
    recall: Interval
    calls: float | None
    dollars: float | None


@dataclass(frozen=True)
class Frontier:
    """Recall against cost, least asked first: the first step is the filter alone, the last asks about every trace.

    No step is fitted to labels, so each recall is honest for a share fixed beforehand; the best of them, picked by its
    recall, is flattered.
    """

    price: Price
    filters: tuple[str, ...]
    steps: tuple[Step, ...]


def frontier(training: TrainingData, price: Price, *, budget: float, shares: Sequence[float] = SHARES) -> Frontier:
    """The cascade at every share that its filter can pick out.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    price : Price
        The expensive detector and what it costs.
    budget : float
        The share of the traffic to flag, between 0 and 1.
    shares : sequence of float
        Shares of the traffic that it is asked about, between 0 and 1.

    Returns
    -------
    Frontier
        Recall and cost at every share that the filter can pick out.
    """
    cheap = tuple(name for name in training.names if name != price.detector)
    rules: list[Rule] = [combine.mean_rank(training.select(cheap))]
    for share in shares:
        rule = combine.cascade_or_none(training, price.detector, pass_share=share)
        rules += [] if rule is None else [rule]
    return Frontier(price, cheap, tuple(_make_step(rule, training, price, budget=budget) for rule in rules))


def _make_step(rule: Rule, training: TrainingData, price: Price, *, budget: float) -> Step:
    share = 0.0
    if isinstance(rule, Cascade):
        share = float(np.average(rule.passes(training.traffic), weights=training.traffic_weights))
    recall = measure_performance(training, apply_rule(rule, training, budget=budget)).recall
    traces = 1000 * share
    calls, dollars = (
        None if unit_price is None else unit_price * traces for unit_price in (price.calls, price.dollars)
    )
    return Step(traces, recall, calls, dollars)

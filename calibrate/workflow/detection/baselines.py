"""Baselines: what each model's clean answers look like, for the detectors that compare with that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from calibrate.backends.logprobs import Aggregate, NoLogprobs, NotLogprobs, entropies, pool
from calibrate.backends.text.refusals import find_refusal
from calibrate.detectors.entropy_z import statistic
from calibrate.stats.fitting import baselines as stats
from calibrate.types import Baseline, Trace, TraceFilter
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import using
from db import Store

CHUNK = 256
UNNAMED = "(none)"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A model for which a statistic has no baseline. `statistic` is None where it has none at all.

    `reasons` are those of its `traces` clean traces, the commonest first, with how many have it; of a statistic that
    was fitted to too few it is one, without a number.
    """

    model: str
    statistic: str | None
    reasons: tuple[tuple[str, int], ...]
    traces: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    fitted: tuple[Baseline, ...]
    skipped: tuple[Skipped, ...]


def fit(store: Store, now: datetime) -> Fitted:
    """Fit every statistic for every model on traces with a clean gold verdict, and store the baselines.

    Refusals are left out, as they are wherever detectors run: a model is sure of its refusals, so they say nothing
    about its answers. A stored baseline that cannot be fitted again stays.
    """
    values: dict[tuple[str, str], list[float]] = {}
    unusable: dict[str, Counter[str]] = {}
    with using(workspace_of(store)):
        for trace in _load_clean_traces(store):
            model = trace.model or UNNAMED
            why = unusable.setdefault(model, Counter())
            try:
                statistics = _compute_statistics(trace)
            except (NoLogprobs, NotLogprobs) as error:
                why[str(error)] += 1
                continue
            for name, value in statistics.items():
                values.setdefault((model, name), []).append(value)
    fitted, skipped = [], []
    for (model, name), numbers in sorted(values.items()):
        try:
            fitted.append(stats.fit_baseline(numbers, statistic=name, model=model, now=now))
        except stats.NoBaseline as error:
            skipped.append(Skipped(model, name, ((str(error), 0),)))
    reached = {model for model, _ in values}
    for model, counted in sorted(unusable.items()):
        if model not in reached:
            skipped.append(Skipped(model, None, tuple(counted.most_common(3)), counted.total()))
    store.baselines.save(fitted)
    return Fitted(tuple(fitted), tuple(skipped))


def age(baseline: Baseline, now: datetime) -> timedelta:
    """How long ago it was fitted; never negative, whatever another machine's clock said."""
    return max(now - baseline.fitted_at, timedelta(0))


def _load_clean_traces(store: Store) -> Iterator[Trace]:
    for chunk in store.traces.keys(TraceFilter(label="clean"), chunk=CHUNK):
        yield from store.traces.load([pk for pk, _ in chunk])


def _compute_statistics(trace: Trace) -> dict[str, float]:
    """Every statistic of the trace by name. Raises NoLogprobs or NotLogprobs where it has none."""
    if trace.model is None:
        raise NoLogprobs("the traces do not say which model answered: a baseline belongs to one")
    if not trace.answer.strip() or not trace.tokens:
        raise NoLogprobs("no tokens with log-probabilities were logged: log them, with `top_logprobs` 5")
    if find_refusal(trace.answer):
        raise NoLogprobs("refusals are left out")
    entropy = entropies(trace.tokens)
    return {statistic(how, entropy.k): pool(entropy.values, how) for how in get_args(Aggregate)}

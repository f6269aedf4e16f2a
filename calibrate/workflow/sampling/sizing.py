"""Plan a sample: the labels each design needs for a wished precision, from the scores and labels at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.stats.fitting.ridge import fit_probability_map
from calibrate.stats.sampling.designs import OF_ALL
from calibrate.stats.sampling.octaves import octaves
from calibrate.stats.sampling.sizing import Stratum, halfwidth, labels_needed
from calibrate.stats.sweep.cumulative import last_of_ties
from calibrate.types import Sample, SampleOptions, TraceFilter
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.sampling import frame
from calibrate.workflow.sampling.frame import Frame, Ranked
from db import Store

Floats = NDArray[np.float64]
FEW = 20  # labels of a sample, below which they are no guide
FEWEST = 20  # traces flagged, below which nobody would set a threshold
PREVALENCE = 0.05  # the share of hallucinated answers where no label says any


@dataclass(frozen=True)
class Expected:
    """A threshold that a plan assumes: it flags the first `flagged` traces in the order `order`, and `chance` is each
    trace's P(hallucinated), in key order; None where only the share flagged is assumed.
    """

    detector: str
    order: NDArray[np.int64]
    flagged: int
    chance: Floats | None


@dataclass(frozen=True)
class Doubt:
    """The labels of `sample` know no threshold with a precision around `precision`: none reaches it, or flagging
    everything is better already, `of_everything`."""

    sample: str
    precision: float
    of_everything: float | None = None


@dataclass(frozen=True)
class Plan:
    """The labels that each design needs (None if all traces of the window are too few), and the half-width of the
    interval that a given number of labels would buy.

    They are for a threshold that flags `flag_rate` of the traffic. `detector` is whose; None where nothing is scored.
    `sample` names the labels that the rate was estimated from; None where it is assumed. `doubt` says where labels know
    of no such threshold.
    """

    labels: dict[str, int | None]
    halfwidth: dict[str, float]
    flag_rate: float
    detector: str | None
    sample: str | None
    doubt: Doubt | None = None


def plan(
    store: Store,
    where: TraceFilter,
    *,
    wish: float,
    precision: float = 0.7,
    prevalence: float,
    by: str | None = None,
    n: int = 300,
) -> Plan:
    """Work out how many labels each design needs to know a precision to +/- `wish`, and what `n` labels buy.

    The plan assumes the loosest threshold at which the newest labels show `precision`, for the detector that finds most
    there. Without such labels it flags as much as is assumed hallucinated, `prevalence`, and is that of the
    detector that needs most. `by` adds a sample stratified by that.
    """
    if not 0 < prevalence <= 1:
        raise BadInput(f"the share of hallucinated answers cannot be {prevalence:g}: give a number above 0, up to 1")
    total = store.traces.count(where)
    if not total:
        raise BadInput("no trace matches, so there is nothing to plan for; widen the window (--since all)")
    rate, detector, sample, doubt = prevalence, None, None, None
    designs: dict[str, dict[str, Stratum]] = {}
    if ranking := _ranked(store, where):
        pool = _octaves(ranking)
        sample, expected = _fit_threshold(store, ranking, precision)
        doubt = _find_doubt(store, sample, expected, precision=precision, wish=wish)
        options = [expected] if expected else list(_assume_threshold(ranking, prevalence))
        candidates = [(_strata(pool, option), option) for option in options]
        strata, worst = max(candidates, key=lambda pair: halfwidth(pair[0], min(n, total), precision=precision))
        rate, detector, designs["octave"] = worst.flagged / total, worst.detector, strata
    designs["random"] = {"all": Stratum(total, rate)}
    if by:
        designs["stratified"] = {name: Stratum(size, rate) for name, size in store.traces.facet(where, by).items()}
    return Plan(
        {name: labels_needed(strata, wish, precision=precision) for name, strata in designs.items()},
        {name: halfwidth(strata, min(n, total), precision=precision) for name, strata in designs.items()},
        rate,
        detector,
        sample.name if sample else None,
        doubt,
    )


def _find_doubt(
    store: Store, sample: Sample | None, expected: Expected | None, *, precision: float, wish: float
) -> Doubt | None:
    if expected is None or sample is None or expected.chance is None:
        guide = next(_find_guides(store), None)
        return Doubt(guide.name, precision) if guide else None
    whole = float(expected.chance[expected.order].mean())
    if expected.flagged < len(expected.order) or whole <= precision + wish:
        return None
    return Doubt(sample.name, precision, whole)


def _ranked(store: Store, where: TraceFilter) -> Ranked | None:
    try:
        return frame.ranked(store, where, store.pools.moment())
    except BadInput:  # not scored, or nothing to rank by: plan without
        return None


def _octaves(ranking: Ranked) -> Frame:
    values = ranking.values
    bands = octaves(values)
    return Frame(ranking.keys, bands.codes(values), bands.names, SampleOptions())


def last_prevalence(store: Store) -> float | None:
    """The share of hallucinated answers, weighted by the design, in the newest sample whose labels are a guide."""
    for sample in _find_guides(store):
        if share := estimate_prevalence(store, sample).share.value:
            return share
    return None


def _find_guides(store: Store) -> Iterator[Sample]:
    """The newest samples of all traffic that have labels enough."""
    for sample in store.samples.list()[:3]:
        if sample.design in OF_ALL and len(count_labels(store, NOBODY, sample).rows) >= FEW:
            yield sample


def _strata(pool: Frame, expected: Expected) -> dict[str, Stratum]:
    flagged = np.zeros(len(pool.keys), dtype=bool)
    flagged[expected.order[: expected.flagged]] = True
    strata = {}
    for name, size in pool.strata.items():
        inside = flagged & (pool.codes == pool.names.index(name))
        n = int(np.count_nonzero(inside))
        precision = float(expected.chance[inside].mean()) if n and expected.chance is not None else None
        strata[name] = Stratum(size, n / size, precision)
    return strata


def _assume_threshold(ranking: Ranked, prevalence: float) -> Iterator[Expected]:
    """Every detector at the threshold that flags most nearly the share that is assumed hallucinated."""
    for column, config in enumerate(ranking.configs):
        order = _rank_traces(ranking, column)
        reach = _count_flagged(ranking, column, order)
        flagged = reach[np.argmin(np.abs(reach - prevalence * len(ranking.keys)))]
        yield Expected(config.name, order, int(flagged), None)


def _fit_threshold(store: Store, ranking: Ranked, precision: float) -> tuple[Sample | None, Expected | None]:
    """The loosest threshold at which the newest labels that say anything put the precision, of the detector that finds
    most by it. Where they say that none reaches it, older labels are not asked until some do."""
    for sample in _find_guides(store):
        best, most_hits, fitted = None, 0.0, False
        for column, config in enumerate(ranking.configs):
            chance = _fit_chances(store, sample, ranking, column)
            if chance is None:
                continue
            fitted = True
            order = _rank_traces(ranking, column)
            reach = _count_flagged(ranking, column, order)
            hits = np.cumsum(chance[order])[reach - 1]
            good = np.flatnonzero((hits / reach >= precision) & (reach >= FEWEST))
            if len(good) and hits[good[-1]] > most_hits:
                most_hits = float(hits[good[-1]])
                best = Expected(config.name, order, int(reach[good[-1]]), chance)
        if fitted:
            return (sample, best) if best else (None, None)
    return None, None


def _fit_chances(store: Store, sample: Sample, ranking: Ranked, column: int) -> Floats | None:
    """P(hallucinated) of every trace by one detector's score, fitted to a sample; None where its labels allow none."""
    config = ranking.configs[column]
    data = loading.load_evidence(store, config.name, sample=sample.name, config=config)
    weights = data.design.weights if data.design else None
    try:
        curve = fit_probability_map(data.labels, data.scores, weights=weights, flag_when=data.flag_when)
    except BadInput:  # one class, or nothing scored
        return None
    return curve.at(ranking.scores[:, column])


def _rank_traces(ranking: Ranked, column: int) -> NDArray[np.int64]:
    """The traces that a detector scored, the most suspicious first."""
    suspicion = ranking.scales[column].sign * ranking.scores[:, column]
    order = np.argsort(-suspicion, kind="stable")
    return np.asarray(order[: int(np.count_nonzero(~np.isnan(suspicion)))])


def _count_flagged(ranking: Ranked, column: int, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many traces each threshold of a detector flags: those of one score, all or none."""
    return np.asarray(last_of_ties(ranking.scores[order, column]) + 1, dtype=np.int64)

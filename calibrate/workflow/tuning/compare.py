"""Curves side by side: detectors, settings of one, models, weeks; and whether they differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.sanitize import one_line
from calibrate.stats.intervals import bootstrap_intervals
from calibrate.stats.intervals import ranking_differences as ranks
from calibrate.stats.intervals.best_of_many import Verdict, judge, simultaneous
from calibrate.stats.intervals.bootstrap import Areas, Units
from calibrate.stats.intervals.prevalence_interval import prevalence_interval
from calibrate.stats.intervals.ranking import Ranked, rank_with_intervals
from calibrate.stats.sweep.sweep import Missing, Sweep, sweep
from calibrate.types import Interval
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.scores import Config

T = TypeVar("T")
UNKNOWN = "no model"  # of traces that name none


@dataclass(frozen=True)
class Compared:
    """Two configurations on the labels that both could score, and their curves there."""

    result: ranks.Comparison
    curves: tuple[Sweep, Sweep]


@dataclass(frozen=True)
class Series:
    """One curve of several, and how well it ranks; the 95% intervals are a bootstrap over groups of shared sources.
    `prevalence` is the share hallucinated in the traffic that it is of."""

    name: str
    sweep: Sweep
    auroc: Interval
    average_precision: Interval
    prevalence: Interval


@dataclass(frozen=True)
class Difference:
    """`name` against the first series: AUROC and average precision, theirs minus the first's, with 95% intervals.

    `paired`: both on the same `n` labels, `positives` of them hallucinated; otherwise each on its own, and `n` is both
    together; `shared` traces are then in both. `missing` says why there are no figures: of the labels that both scored,
    else of those of the series that it names. `verdict` is on AUROC, and held against the number of differences.
    """

    name: str
    paired: bool
    n: int
    positives: int
    auroc: Interval
    average_precision: Interval
    missing: Missing | None = None
    lacking: str | None = None
    shared: int = 0
    verdict: Verdict = Verdict.UNKNOWN


@dataclass(frozen=True)
class Contrast:
    """Several curves, and each but the first against the first."""

    series: tuple[Series, ...]
    differences: tuple[Difference, ...]


def compare(
    store: Store, first: Config, second: Config, *, sample: str | Sequence[str] | None = None, seed: int = 0
) -> Compared:
    """Two configurations on the definite labels that both have scored. The same seed, the same answer.

    Traces that share their sources are drawn together.
    """
    evidence, second_data = (
        loading.load_evidence(store, config.name, sample=sample, config=config) for config in (first, second)
    )
    return _compare_pair(evidence, second_data, seed=seed)


def of_detectors(
    store: Store,
    detectors: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    sample: str | Sequence[str] | None = None,
    seed: int = 0,
) -> Contrast:
    """Compare detectors on the same labels, each in its default configuration; `names` are the names of the curves, by
    default the detectors' own."""
    names = detectors if names is None else names
    data = [
        loading.load_evidence(store, detector, sample=sample)
        for detector in _check_several(detectors, "detectors", names)
    ]
    return _compare_paired(names, data, seed=seed)


def of_settings(
    store: Store,
    configs: Sequence[Config],
    names: Sequence[str],
    *,
    sample: str | Sequence[str] | None = None,
    seed: int = 0,
) -> Contrast:
    """Compare settings of one detector on the same labels; `names` are the names of the curves."""
    data = [
        loading.load_evidence(store, config.name, sample=sample, config=config)
        for config in _check_several(configs, "settings", names)
    ]
    return _compare_paired(names, data, seed=seed)


def of_models(
    store: Store, name: str, models: Sequence[str], *, sample: str | Sequence[str] | None = None, seed: int = 0
) -> Contrast:
    """Compare one detector on the answers of each model that was logged."""
    data = loading.load_evidence(store, name, sample=sample)
    model_of_row = np.array([row.model or UNKNOWN for row in data.rows], dtype=object)
    parts = [_Part(model, data, np.flatnonzero(model_of_row == model)) for model in _check_several(models, "models")]
    return _compare_unpaired(parts, seed=seed)


def of_samples(store: Store, name: str, samples: Sequence[str], *, seed: int = 0) -> Contrast:
    """Compare one detector on the labels of several samples, like those of two weeks."""
    data = [loading.load_evidence(store, name, sample=sample) for sample in _check_several(samples, "samples")]
    return _compare_unpaired(
        [_Part(name, evidence, np.arange(len(evidence.rows))) for name, evidence in zip(samples, data, strict=True)],
        seed=seed,
    )


def models_of(data: Evidence) -> list[str]:
    """The models behind the labels, the one with most labels first."""
    names, counts = np.unique([row.model or UNKNOWN for row in data.rows], return_counts=True)
    return [str(names[i]) for i in np.argsort(-counts, kind="stable")]


@dataclass(frozen=True)
class _Part:
    """Some rows of a labelled set. All of them keep its design; fewer keep their weights."""

    name: str
    data: Evidence
    rows: NDArray[np.intp]

    @property
    def keys(self) -> set[int]:
        return {self.data.rows[i].pk for i in self.rows}

    @property
    def whole(self) -> bool:
        return len(self.rows) == len(self.data.rows)

    def sweep(self) -> Sweep:
        if self.whole:
            return self.data.sweep
        weights = None if self.data.design is None else self.data.design.weights[self.rows]
        labels, scores = self.data.labels[self.rows], self.data.scores[self.rows]
        groups = [self.data.groups[i] for i in self.rows]
        return sweep(labels, scores, weights=weights, groups=groups, flag_when=self.data.flag_when)

    @property
    def verdicts(self) -> bootstrap_intervals.Verdicts:
        """The groups of these rows that have a score."""
        scored = self.rows[~np.isnan(self.data.scores[self.rows])]
        units = Units.among([self.data.groups[i] for i in scored]).of
        return bootstrap_intervals.Verdicts.of(self.data.labels[scored], units)

    @property
    def prevalence(self) -> Interval:
        data, inside = self.data, np.isin(np.arange(len(self.data.rows)), self.rows)
        if data.caution:  # these labels describe no traffic
            return Interval(None)
        return prevalence_interval(data.labels, inside=inside, design=data.design, groups=data.groups)

    def ranked(self, curve: Sweep, seed: int) -> Ranked:
        design, groups = self.data.design, self.data.groups
        return rank_with_intervals(
            curve,
            self.data.labels[self.rows],
            self.data.scores[self.rows],
            rng=np.random.default_rng(seed),
            weights=None if design is None else design.weights[self.rows],
            strata=None if design is None else design.strata[self.rows],
            groups=[groups[i] for i in self.rows],
        )


def _compare_paired(names: Sequence[str], data: Sequence[Evidence], *, seed: int) -> Contrast:
    parts = [_Part(name, evidence, np.arange(len(evidence.rows))) for name, evidence in zip(names, data, strict=True)]
    many = len(data) - 1
    results = [_compare_pair(data[0], evidence, seed=seed, together=many).result for evidence in data[1:]]
    return Contrast(
        tuple(_make_series(part, seed)[0] for part in parts),
        tuple(
            Difference(
                name,
                True,
                result.n,
                result.positives,
                result.auroc,
                result.average_precision,
                result.missing,
                verdict=judge(result.auroc, result.auroc_together),
            )
            for name, result in zip(names[1:], results, strict=True)
        ),
    )


def _compare_unpaired(parts: Sequence[_Part], *, seed: int) -> Contrast:
    """Compare parts that share few traces, if any: each is resampled on its own."""
    series, draws = zip(*(_make_series(part, seed + i) for i, part in enumerate(parts)), strict=True)
    shared = [len(parts[0].keys & part.keys) for part in parts]
    verdicts = [part.verdicts for part in parts]
    fewest = [min(verdicts[0], scored, key=lambda labels: labels.few) for scored in verdicts]
    return Contrast(
        series,
        tuple(
            replace(_make_difference(series[0], draws[0], curve, drawn, few, len(parts) - 1), shared=both)
            for curve, drawn, few, both in zip(series[1:], draws[1:], fewest[1:], shared[1:], strict=True)
        ),
    )


def _make_series(part: _Part, seed: int) -> tuple[Series, Areas]:
    curve = part.sweep()
    ranking = part.ranked(curve, seed)
    return Series(part.name, curve, ranking.auroc, ranking.average_precision, part.prevalence), ranking.draws


def _make_difference(
    first: Series,
    before: Areas,
    second: Series,
    after: Areas,
    verdicts: bootstrap_intervals.Verdicts,
    together: int,
) -> Difference:
    n, positives = (getattr(first.sweep, field) + getattr(second.sweep, field) for field in ("n", "positives"))
    if lacking := next((series for series in (first, second) if series.sweep.missing), None):
        missing = lacking.sweep.missing
        return Difference(second.name, False, n, positives, Interval(None), Interval(None), missing, lacking.name)
    if few := next((series for series in (first, second) if not series.sweep.can_rank), None):
        nothing = Interval(None)
        return Difference(second.name, False, n, positives, nothing, nothing, Missing.FEW_TO_RANK, few.name)
    auroc = (second.sweep.auroc or 0.0) - (first.sweep.auroc or 0.0)
    average = (second.sweep.average_precision or 0.0) - (first.sweep.average_precision or 0.0)
    alone, wider = (
        bootstrap_intervals.percentile_interval(auroc, after.auroc - before.auroc, verdicts, confidence=confidence)
        for confidence in (bootstrap_intervals.SURE, simultaneous(together))
    )
    return Difference(
        second.name,
        False,
        n,
        positives,
        alone,
        bootstrap_intervals.percentile_interval(average, after.average_precision - before.average_precision, verdicts),
        verdict=judge(alone, wider),
    )


def _compare_pair(first_data: Evidence, second_data: Evidence, *, seed: int, together: int = 1) -> Compared:
    weights = np.ones(len(first_data.rows)) if first_data.design is None else first_data.design.weights
    values = {row.pk: row.value for row in second_data.rows if row.value is not None}
    places = [i for i, row in enumerate(first_data.rows) if row.value is not None and row.pk in values]
    rows = [first_data.rows[i] for i in places]
    y = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    first = np.array([row.value for row in rows], dtype=float)
    second = np.array([values[row.pk] for row in rows], dtype=float)
    weights_there = weights[places]
    groups = np.array([f"group {row.group}" if row.group else f"trace {row.pk}" for row in rows], dtype=object)
    result = ranks.compare_rankings(
        y,
        first,
        second,
        rng=np.random.default_rng(seed),
        flag_when=first_data.flag_when,
        second_flag_when=second_data.flag_when,
        clusters=groups.astype(str),
        weights=weights_there,
        strata=None if first_data.design is None else first_data.design.strata[places],
        confidence=simultaneous(together),
    )
    curves = [
        sweep(y, scores, weights=weights_there, flag_when=data.flag_when)
        for scores, data in ((first, first_data), (second, second_data))
    ]
    return Compared(result, (curves[0], curves[1]))


def _check_several(things: Sequence[T], what: str, names: Sequence[str] = ()) -> Sequence[T]:
    """Two things or more; `names` are what to call them. Raises BadInput, with the remedy for fewer."""
    names = [one_line(name, 60) for name in names or map(str, things)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"a comparison needs each of its {what} once, and {twice} is named twice: leave one out")
    if len(things) < 2:
        only = f"only {names[0] or 1}" if names else "none"
        raise BadInput(
            f"a comparison needs two {what} or more, and there is {only}: "
            + {
                "detectors": "name another, or compare within one (`--by models`, `--by settings` or `--by samples`)",
                "settings": "run the detector with other parameters (`detect NAME --param KEY=VALUE`, or Detect)",
                "models": "label traces that another model answered, or take other labels (`--sample NAME`)",
                "samples": "draw and label another one (`sample NAME`, or the Draw page)",
            }[what]
        )
    return things

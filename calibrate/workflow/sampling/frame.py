"""The frame of a sample: every trace of its pool, with the stratum that the design puts it in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.sampling.designs import Cut
from calibrate.stats.sampling.octaves import Octaves, Scale, mean_z, octaves, octaves_around, scale_of
from calibrate.types import DrawnCut, Moment, RankedBy, Sample, SampleOptions, TraceFilter
from calibrate.workflow.detection import configurations
from db import Store
from db.pools import Flagged
from db.scores import Config

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EVERYTHING, FLAGGED = "all", "flagged"
ENOUGH_SCORED = 0.5
"""The share of the window that must have a score before octave is the design to take."""


OnRows = Callable[[int], None]


def quietly(rows: int) -> None:
    """Nobody wants to know how many rows are read."""


class NoStrata(BadInput):
    """A design finds no strata in the window, or more strata than the sample has members."""


@dataclass(frozen=True)
class Frame:
    """Trace keys in key order, the stratum of each as a code, and the strata's names; `options` is how a stored sample
    remembers what told them apart."""

    keys: Ints
    codes: Ints
    names: tuple[str, ...]
    options: SampleOptions

    @property
    def strata(self) -> dict[str, int]:
        """How many traces each stratum holds; one that holds none is no stratum."""
        sizes = np.bincount(self.codes, minlength=len(self.names))
        return {name: int(size) for name, size in zip(self.names, sizes, strict=True) if size}

    def inside(self, stratum: str) -> Ints:
        """The keys of one stratum."""
        return np.asarray(self.keys[self.codes == self.names.index(stratum)])


@dataclass(frozen=True)
class Ranked:
    """The mean z-score of every trace of a pool over the detectors that scored it, NaN where none did, and each
    detector's own scores, which it is made of."""

    keys: Ints
    scores: Floats
    configs: tuple[Config, ...]
    scales: tuple[Scale, ...]

    @property
    def values(self) -> Floats:
        return mean_z(self.scores, self.scales)


def scored_configs(store: Store) -> list[Config]:
    """The default configuration of every detector that has scores, in the order of their ids."""
    return sorted(
        (configs[-1] for configs in configurations.configs_by_detector(store).values()), key=lambda config: config.id
    )


def ranked(store: Store, where: TraceFilter, at: Moment, on_rows: OnRows = quietly) -> Ranked:
    """Rank the window's traces by suspicion. Raises NoStrata if they have no scores, or scores that do not differ.

    `on_rows` is told now and then how many traces are read; it ends the ranking by raising.
    """
    configs = scored_configs(store)
    keys, scores = store.pools.scores(where, at, [config.id for config in configs], on_rows=on_rows)
    if not len(keys) or np.isnan(scores).all():
        raise NoStrata(
            "no trace of the window has a score to rank it by: score the window first (`detect DETECTOR --all`, or "
            "the Detect page), or draw with --design random"
        )
    _check_finite(scores)
    scales = {i: scale_of(scores[:, i], _sign(config)) for i, config in enumerate(configs)}
    varied = {i: scale for i, scale in scales.items() if scale is not None}
    if not varied:
        raise NoStrata("all scores of the window are equal, so nothing ranks its traces: draw with --design random")
    return Ranked(keys, scores[:, list(varied)], tuple(configs[i] for i in varied), tuple(varied.values()))


def octave(store: Store, where: TraceFilter, at: Moment, on_rows: OnRows = quietly) -> Frame:
    """Strata by the mean z-score over all detectors."""
    ranking = ranked(store, where, at, on_rows)
    values = ranking.values
    configs = tuple(
        RankedBy(config.id, config.name, scale.sign, scale.mean, scale.sd)
        for config, scale in zip(ranking.configs, ranking.scales, strict=True)
    )
    return _make_bands(ranking.keys, values, octaves(values), SampleOptions(configs=configs))


def uncertain(store: Store, where: TraceFilter, at: Moment, cut: Cut, on_rows: OnRows = quietly) -> Frame:
    """Strata by nearness to a threshold of one detector, in ranks."""
    config = config_of(store, cut)
    keys, values = _scores_of(store, where, at, config, on_rows)
    return _make_bands(keys, values, octaves_around(values, cut.threshold), SampleOptions(cut=_record_cut(config, cut)))


def flagged(store: Store, where: TraceFilter, at: Moment, cut: Cut, *, fresh: bool) -> Frame:
    """The one stratum of what a threshold flags."""
    config = config_of(store, cut)
    keys = store.pools.flagged(where, at, _make_flagged(config, cut, fresh=fresh))
    return Frame(keys, _single_stratum(keys), (FLAGGED,), SampleOptions(cut=_record_cut(config, cut), fresh=fresh))


def count_flagged(store: Store, where: TraceFilter, at: Moment, cut: Cut, *, fresh: bool) -> int:
    return store.pools.count_flagged(where, at, _make_flagged(config_of(store, cut), cut, fresh=fresh))


def again(store: Store, sample: Sample) -> Frame:
    """Rebuild the frame that a stored sample was drawn from: the same traces, in the same strata.

    Raises BadInput where the store no longer shows it, or the sample was drawn by a version that did not keep how.
    """
    at = sample.options.at
    if at is None:
        raise BadInput(f"{sample.name!r} was drawn before samples could be topped up: draw a new one beside it")
    frame = _rebuild(store, sample, sample.filter, at)
    then = {name: size for name, (size, _) in sample.strata.items()}
    if frame.strata != then:
        name = next(n for n in sorted({*then, *frame.strata}) if then.get(n) != frame.strata.get(n))
        raise BadInput(
            f"{sample.name!r} can no longer be topped up: its stratum {name!r} held {then.get(name, 0):,} traces when "
            f"it was drawn and shows {frame.strata.get(name, 0):,} now, as labels, scores or other samples have "
            "changed; draw a new sample"
        )
    return frame


def _rebuild(store: Store, sample: Sample, where: TraceFilter, at: Moment) -> Frame:
    options = sample.options
    if sample.design == "stratified":
        keys, groups = store.pools.values(where, at, str(sample.by))
        names = tuple(sorted(set(groups)))
        codes = {name: code for code, name in enumerate(names)}
        return Frame(keys, np.array([codes[group] for group in groups], dtype=np.int64), names, options)
    if sample.design == "fresh-flagged":
        return flagged(store, where, at, _read_cut(sample), fresh=options.fresh)
    if sample.design == "random":
        keys = store.pools.keys(where, at)
        return Frame(keys, _single_stratum(keys), (EVERYTHING,), options)
    bands = Octaves(options.bands)
    if sample.design == "uncertain":
        config = config_of(store, _read_cut(sample))
        keys, values = _scores_of(store, where, at, config)
    else:
        keys, scores = store.pools.scores(where, at, [config.id for config in options.configs])
        scales = [Scale(config.sign, config.mean, config.sd) for config in options.configs]
        values = mean_z(scores, scales)
    return _make_bands(keys, values, bands, SampleOptions())


def config_of(store: Store, cut: Cut) -> Config:
    """The configuration of a cut. Raises BadInput for one that is not there, and a threshold that is no number."""
    if not math.isfinite(cut.threshold):
        raise BadInput(f"the threshold {cut.threshold} is no finite number, so it flags nothing or everything")
    if (config := store.scores.find_config(cut.config_id)) is None:
        raise BadInput(f"the store has no detector configuration {cut.config_id}; run the detector first")
    return config


def _scores_of(
    store: Store, where: TraceFilter, at: Moment, config: Config, on_rows: OnRows = quietly
) -> tuple[Ints, Floats]:
    keys, scores = store.pools.scores(where, at, [config.id], on_rows=on_rows)
    values = scores[:, 0]
    if len(keys) and np.isnan(values).all():
        raise BadInput(
            f"{config.name} has scored no trace of the window: score it first "
            f"(`{registry.how_to_score(config.name)}`, or the Detect page)"
        )
    _check_finite(values)
    return keys, values


def _make_bands(keys: Ints, values: Floats, bands: Octaves, options: SampleOptions) -> Frame:
    return Frame(keys, bands.codes(values), bands.names, replace(options, bands=bands.bounds))


def _record_cut(config: Config, cut: Cut) -> DrawnCut:
    return DrawnCut(config.id, config.name, cut.threshold, cut.apart)


def _read_cut(sample: Sample) -> Cut:
    """The cut of a sample that was drawn by one."""
    cut = sample.options.cut
    assert cut is not None
    return Cut(cut.config_id, cut.threshold, cut.apart)


def _make_flagged(config: Config, cut: Cut, *, fresh: bool) -> Flagged:
    return Flagged(config.id, cut.threshold, registry.get(config.name).flag_when, fresh, cut.apart)


def _sign(config: Config) -> float:
    return 1.0 if registry.get(config.name).flag_when == "above" else -1.0


def _check_finite(scores: Floats) -> None:
    if np.isinf(scores).any():
        raise BadInput("a score of the window is infinite: a detector that cannot score must abstain; run it again")


def _single_stratum(keys: Ints) -> Ints:
    return np.zeros(len(keys), dtype=np.int64)

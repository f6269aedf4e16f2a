"""Drift: whether the scores of a release's detectors moved since the window that it was made on, without labels.

Every detector is compared under the configuration that was released (its version, parameters and model revision), for
every model: a model's traffic since the release with its own traffic before, an unseen model's with that of
the models it was made on.
A window of which not all was scored is compared by its samples that were drawn at random, as the choice of the rest
might be what differs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.stats.fitting.prevalence import estimate_prevalence
from calibrate.stats.monitoring.drift import ALPHA, ENOUGH, Moved, Shift, Window, compare_windows, judge_shifts
from calibrate.stats.sweep.clusters import cluster_codes
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import TraceFilter
from calibrate.workflow.releasing.by_segment import thresholds_of
from calibrate.workflow.releasing.history import promised_precision, read_release, releases_alike
from calibrate.workflow.releasing.unknown_models import MIN_SHARE, unknown_models
from calibrate.workflow.watching.drift_report import Bins, DetectorDrift, DriftState, Gap, Report, Stale, StaleBaseline
from calibrate.workflow.watching.recheck_plan import look
from db import Store
from db.coverage import DrawnScores
from db.releases import Release
from db.scores import Config
from db.tables.filters import NONE

CAP = 2000  # traces of a window that are compared at most, drawn by chance
WHOLE = 0.95  # the share of a window that must be scored, to be taken as all of it
OLD = timedelta(days=90)  # an entropy baseline
BINS = 30
MODELS = 12  # those with the most traffic


def drift(
    store: Store,
    *,
    version: int | None = None,
    since: datetime | None = None,
    detectors: Collection[str] | None = None,
    now: datetime,
    seed: int = 0,
    cap: int = CAP,
) -> Report:
    """The report on a release (default: the newest). `since`: where the live window begins, default the release, or
    the first one that decides alike where that was rolled back to.

    Raises BadInput where nothing was released, there is no such version, a detector is not in it, and for a seed below
    0.
    """
    if seed < 0:
        raise BadInput(f"a seed is a whole number, 0 or more, not {seed}")
    release = _read_release(store, version)
    file = read_release(release)
    entries = _select_entries(file, detectors)
    began = releases_alike(store, release)[-1].released_at
    since = since or (began if began < release.released_at else None)
    live = TraceFilter(since=since or release.released_at, undated=False)
    before = _find_window_before(store, release, file, live)
    traces = store.traces.facet(live, "model")
    total = sum(traces.values())
    models = [name for name, n in traces.items() if n >= MIN_SHARE * total][:MODELS]
    unknown = unknown_models(store, release)
    unseen = {unseen_model.name for unseen_model in unknown}
    pairs = [
        _Pair(name, entry, model, (file.data.models or (NONE,)) if model in unseen else ())
        for name, entry in entries.items()
        for model in models
    ]
    compared = [_look(store, pair, before, live, now=now, seed=seed, cap=cap, tests=3 * len(pairs)) for pair in pairs]
    moved = iter(judge_shifts([pair.shift for pair in compared if pair.shift is not None]))
    lines = tuple(_make_line(pair, next(moved) if pair.shift else None, traces[pair.pair.model]) for pair in compared)
    lines = tuple(
        replace(line, segments=_find_rechecked(store, line, release.version, now)) if line.by and line.urgent else line
        for line in lines
    )
    return Report(
        version=release.version,
        released_at=release.released_at,
        models=file.data.models,
        before=before,
        now=live,
        traces=total,
        unknown=unknown,
        lines=lines,
        cap=cap,
        seed=seed,
        alpha=ALPHA,
        since=since,
        left_out=len(traces) - len(models),
    )


NOTHING = Window(np.empty(0))


@dataclass(frozen=True)
class _Pair:
    name: str
    entry: DetectorEntry
    model: str
    instead: tuple[str, ...]  # the models that an unseen one is compared with

    @property
    def unseen(self) -> bool:
        return bool(self.instead)


@dataclass(frozen=True)
class _Compared:
    """A pair as the store shows it; without a `shift`, `gap` says what is missing."""

    pair: _Pair
    gap: Gap | None
    baseline: StaleBaseline | None
    scored: int = 0
    before: Window = NOTHING
    now: Window = NOTHING
    shift: Shift | None = None


def _read_release(store: Store, version: int | None) -> Release:
    if version is None:
        newest = store.releases.list()
        if not newest:
            raise BadInput("nothing was released yet, so nothing can have drifted: choose thresholds and release them")
        return newest[0]
    release = store.releases.get(version)
    if release is None:
        raise BadInput(f"there is no release {version}; the newest is {_read_release(store, None).version}")
    return release


def _select_entries(file: ThresholdsFile, names: Collection[str] | None) -> Mapping[str, DetectorEntry]:
    """The detectors that the release asks, or those of them that are wanted."""
    entries = {rule.detector: file.detectors[rule.detector] for rule in file.rules}
    for name in names or ():
        if name not in entries:
            raise BadInput(f"{name} is not in release {file.version}, which asks {', '.join(entries) or 'no detector'}")
    return {name: entry for name, entry in entries.items() if names is None or name in names}


def _find_window_before(store: Store, release: Release, file: ThresholdsFile, live: TraceFilter) -> TraceFilter:
    """The window the release was made on: the one its file names, else its sample's, else all there was; as far as the
    live window has none of it."""
    window, sample = file.data.window, store.samples.get(file.data.sample) if file.data.sample else None
    where = replace(sample.filter, label="any") if sample else TraceFilter()
    if window is not None:
        where = replace(where, since=window.since, until=window.until)
    ends = (where.until, release.released_at, live.since)
    return replace(where, until=min(end for end in ends if end is not None))


def _look(
    store: Store, pair: _Pair, before: TraceFilter, live: TraceFilter, *, now: datetime, seed: int, cap: int, tests: int
) -> _Compared:
    """Both windows of a detector on a model, compared where they can be."""
    entry, rng = pair.entry, np.random.default_rng([seed, *f"{pair.name} {pair.model}".encode()])
    config = _find_config(store, pair, now)
    stale = _stale(store, pair, now)
    releases_alike = entry.sampling.only_when if entry.sampling else {}
    windows = [replace(window, attributes={**window.attributes, **releases_alike}) for window in (before, live)]
    windows[0] = replace(windows[0], models=pair.instead or (pair.model,))
    windows[1] = replace(windows[1], models=(pair.model,))
    coverage = [
        _measure_coverage(store, config, window, sampled=entry.sampling is not None and entry.sampling.rate < 1)
        for window in windows
    ]
    compared = _Compared(pair, None, stale, scored=coverage[1].scored)
    if not coverage[1].scored:
        return replace(compared, gap=Gap(DriftState.NOT_SCORED))
    if not coverage[0].scored:
        return replace(compared, gap=Gap(DriftState.NO_REFERENCE))
    if partly := next((window for window in reversed(coverage) if window.partly), None):
        gap = Gap(DriftState.PARTLY_SCORED, partly.traces, partly.scored, live=partly is coverage[1])
        return replace(compared, gap=gap)
    drawn = [
        _make_window(store, entry, store.coverage.draw(config.id, where, cap, rng=rng, random=window.random))
        for where, window in zip(windows, coverage, strict=True)
    ]
    shift = compare_windows(
        drawn[0], drawn[1], threshold=entry.threshold, flag_when=entry.flag_when, rng=rng, tests=tests
    )
    return replace(compared, before=drawn[0], now=drawn[1], shift=shift)


@dataclass(frozen=True)
class _Coverage:
    """How many traces a window has and how many were run; `random`: only those of random samples stand for it."""

    traces: int
    scored: int
    random: bool = False
    partly: bool = False


def _measure_coverage(store: Store, config: Config, where: TraceFilter, *, sampled: bool) -> _Coverage:
    scored = store.coverage.count(config.id, where)
    refused = store.coverage.count_refusals(config.id, where)
    traces = store.traces.count(where)
    if not scored or sampled or scored + refused >= WHOLE * traces:
        return _Coverage(traces, scored)
    random = store.coverage.count(config.id, where, random=True)
    return _Coverage(traces, scored, random=True, partly=random < ENOUGH)


def _make_window(store: Store, entry: DetectorEntry, drawn: DrawnScores) -> Window:
    thresholds = thresholds_of(store, entry, drawn.pks) if entry.segments else None
    return Window(drawn.scores, cluster_codes(drawn.groups), thresholds)


def _find_config(store: Store, pair: _Pair, now: datetime) -> Config:
    entry = pair.entry
    return store.scores.config(pair.name, entry.version, entry.params, entry.revision, now=now)


def _stale(store: Store, pair: _Pair, now: datetime) -> StaleBaseline | None:
    """Why the entropy baseline of a model is stale; None where it is not, or the detector has none."""
    params = pair.entry.params
    if pair.name != "entropy_z" or params.get("variant") == "plain":
        return None
    family = f"entropy/{params.get('aggregate', 'top_decile')}/"
    baselines = [baseline for (name, model), baseline in store.baselines.current().items() if model == pair.model]
    fitted = [baseline.fitted_at for baseline in baselines if baseline.statistic.startswith(family)]
    if not fitted:
        return StaleBaseline(Stale.MISSING)
    age = now - max(fitted)
    return StaleBaseline(Stale.OLD, age.days) if age > OLD else None


def _find_rechecked(store: Store, line: DetectorDrift, version: int, now: datetime) -> tuple[str, ...]:
    """The segments of a line that have flagged traces to recheck."""
    by_model = line.by == "model"
    model = line.model if line.unseen and not by_model else None
    return tuple(
        segment
        for segment in line.segments
        if (segment == line.model or not by_model)
        and look(store, line.detector, version=version, model=model, segment=segment, now=now).flagged
    )


def _make_line(compared: _Compared, moved: Moved | None, traces: int) -> DetectorDrift:
    pair, shift = compared.pair, compared.shift
    state, stale = _judge_state(compared, moved), compared.baseline
    own = pair.entry.segments.thresholds if pair.entry.segments else {}
    if stale is None and moved is not None and moved.scores and pair.name == "entropy_z":
        stale = StaleBaseline(Stale.MOVED)
    return DetectorDrift(
        detector=pair.name,
        model=pair.model,
        tier=pair.entry.tier,
        threshold=pair.entry.threshold,
        flag_when=pair.entry.flag_when,
        limit=pair.entry.limits,
        state=state,
        unseen=pair.unseen,
        traces=traces,
        scored=compared.scored,
        compared=len(compared.now.scores),
        compared_before=len(compared.before.scores),
        shift=shift,
        moved=moved,
        bins=_make_bins(compared.before.scores, compared.now.scores) if shift else None,
        gap=compared.gap,
        baseline=stale,
        prevalence=_prevalence(pair.entry, compared) if shift else None,
        promised=promised_precision(pair.entry),
        by=pair.entry.segments.by if pair.entry.segments else None,
        segments=tuple(sorted(own, key=lambda name: (-own[name].n, name))),
    )


def _judge_state(compared: _Compared, moved: Moved | None) -> DriftState:
    if compared.pair.unseen:
        return DriftState.RECALIBRATE
    if compared.gap is not None:
        return compared.gap.state
    if moved is not None and moved.any:
        return DriftState.MOVED
    return DriftState.HOLDS if compared.shift and compared.shift.p_scores is not None else DriftState.TOO_FEW


def _make_bins(before: NDArray[np.float64], now: NDArray[np.float64]) -> Bins:
    """From the 0.5% to the 99.5% point of both together: a stray score does not squeeze the rest."""
    sides = [scores[~np.isnan(scores)] for scores in (before, now)]
    both = np.concatenate(sides)
    if not len(both):
        return Bins(np.zeros(1), np.zeros(0), np.zeros(0))
    low, high = np.quantile(both, [0.005, 0.995])
    edges = np.histogram_bin_edges(np.clip(both, low, high), bins=BINS)
    shares = [np.histogram(np.clip(scores, low, high), bins=edges)[0] / max(1, len(scores)) for scores in sides]
    return Bins(edges, *shares)


def _prevalence(entry: DetectorEntry, compared: _Compared) -> tuple[float, float] | None:
    if entry.probability_map is None:
        return None
    probability_map = entry.probability_map.map
    mapped = [
        [p for score in side.scores if (p := probability_map.probability(float(score))) is not None]
        for side in (compared.before, compared.now)
    ]
    if not all(mapped) or not 0 < float(np.mean(mapped[0])) < 1:
        return None
    prior = float(np.mean(mapped[0]))
    return prior, estimate_prevalence(mapped[1], prior).value

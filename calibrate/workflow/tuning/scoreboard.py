"""Scoreboard: every detector on the same labels, with what it costs, beside the baselines that it must beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from calibrate.orientation import suspicion
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.intervals.best_of_many import Verdict, compare_leader, judge
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.intervals.ranking import rank_with_intervals
from calibrate.stats.intervals.ranking_differences import Comparison
from calibrate.stats.intervals.ranking_within import Within
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.labels.undecided import Reach
from calibrate.stats.sweep.design import Floats, Ints
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import FlagWhen, Interval, OperatingPoint, Segments
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis, Caution
from calibrate.workflow.evidence.score_matrix import ScoreMatrix, load_score_matrix
from calibrate.workflow.evidence.undecided import settled_at
from calibrate.workflow.tuning.model_identity import MODEL, Origins, measure_within, origins_of, rate_models
from calibrate.workflow.tuning.spending import Spent, spent_by
from db import Store
from db.points import SavedPoint
from db.scores import Config

DEFAULT = Policy("precision", 0.7)
LENGTH, OVERLAP = "answer_length", "word_overlap"
BASELINES = (LENGTH, OVERLAP, MODEL)
RESAMPLES = 1000
HALF = 0.5


@dataclass(frozen=True)
class AtPoint:
    """A detector at one threshold, measured on the scoreboard's labels, of which `flagged` are flagged.

    `saved`: it is the operating point that was saved, else what `policy` chooses on these very labels, the
    nearest one where nothing is `feasible`, which `nearest` then holds as it was chosen. `other`: the saved point is of
    other parameters or another model. `settled` is what the recall becomes once the unsure and disputed labels are
    settled, None where there are none. `segments` were saved with it; all figures are of its one threshold.
    """

    threshold: float
    flag_when: FlagWhen
    policy: str
    saved: bool
    feasible: bool
    precision: Interval
    recall: Interval
    flagged: int
    nearest: OperatingPoint | None = None
    other: bool = False
    settled: Reach | None = None
    segments: Segments | None = None

    @property
    def chosen(self) -> str:
        """How it was chosen: saved, here (on these labels), or nearest (there, without meeting the policy)."""
        return "saved" if self.saved else "here" if self.feasible else "nearest"


@dataclass(frozen=True)
class Line:
    """One detector. `n` labels count for it, `scored` of them with a score, `positives` hallucinated; on `not_run` it
    was not run. Beyond these, `fitted` labels fitted it. `coverage` is the estimated share of the traffic that it can
    score where it is run. The two areas are over scored labels; None where those are too few to rank. `within` is of
    pairs of answers of one model and operation."""

    name: str
    n: int
    scored: int
    positives: int
    not_run: int
    fitted: int
    coverage: float
    auroc: Interval
    average_precision: Interval
    within: Within
    point: AtPoint | None
    spent: Spent

    @property
    def baseline(self) -> bool:
        return self.name in BASELINES


@dataclass(frozen=True)
class Against:
    """The leader against another on the labels that both scored: differences are leader minus `other`."""

    other: str
    result: Comparison

    @property
    def verdict(self) -> Verdict:
        """What it shows, held against how many might have led."""
        return judge(self.result.auroc, self.result.auroc_together)

    @property
    def beyond(self) -> bool:
        """Better by more than its interval and by more than picking the leader explains."""
        return self.verdict == Verdict.BETTER


class Silence(StrEnum):
    """Why a detector scored nothing, where it gave no reason itself."""

    NO_LABELS = "no labels"
    WAITING = "waiting"  # labels are there, behind a member of the sample that has none
    FITTED = "fitted"  # every label fitted it
    REFUSALS = "refusals"  # every labelled answer is one, and those are not scored


@dataclass(frozen=True)
class Scoreboard:
    """Detectors by AUROC, best first, then the baselines; `silent` are those that scored nothing, with why.

    `leader` is the best of the `ranked` that score at least half of the labels, None where no area is known. The truly
    best of these is the leader or one of `may_be_best`, in 95% of samples or more. `against` has the next best and the
    baselines. With a `caution` the labels do not describe the traffic, and no threshold is
    chosen on them. `models` answered the `logged` labels that say which.
    """

    sample: str | None
    n: int
    positives: int
    refused: int
    lines: tuple[Line, ...]
    silent: Mapping[str, str | Silence]
    leader: str | None
    ranked: tuple[str, ...]
    may_be_best: tuple[str, ...]
    against: tuple[Against, ...]
    caution: Caution | None = None
    models: int = 0
    logged: int = 0

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)


def scoreboard(store: Store, *, sample: str | None = None, seed: int = 0) -> Scoreboard:
    """Every detector that has scores, in the configuration that is meant. The same seed, the same answer.

    Traces that share their sources count as groups. Raises BadInput for an unknown sample, and where nothing has
    scores.
    """
    data = load_score_matrix(store, sample=sample)
    origins = origins_of(store, data)
    scores: dict[str, Floats] = {**data.scores, LENGTH: measure_lengths(store, data)}
    if (rates := rate_models(data, origins, seed)) is not None:
        scores[MODEL] = rates
    flag_when: dict[str, FlagWhen] = {**data.flag_when, LENGTH: "above", MODEL: "above"}
    saved = store.points.latest()
    lines, silent = [], {}
    for name, values in scores.items():
        config = data.configs.get(name)
        if not np.isfinite(values).any():
            silent[name] = _explain_silence(store, data, name)
            continue
        counts = data.counts.get(name, np.ones(len(values), dtype=bool))
        part = data if counts.all() else data.only(counts)
        curve = sweep(part.labels, values[counts], design=part.design, groups=part.groups, flag_when=flag_when[name])
        spent = Spent(0.0, 0.0, 0.0, False) if config is None else spent_by(store, config, data.sample)
        point = _settle(store, part, config, _choose_point(part, curve, config, saved.get(name)))
        line = _make_line(name, part, origins.only(counts), values[counts], curve, point, spent, seed)
        lines.append(replace(line, fitted=len(values) - line.n))
    lines.sort(key=lambda line: (line.baseline, -(line.auroc.value or 0.0)))
    ranked = _rank(lines)
    may_be_best, against = _compare_leader(data, scores, flag_when, ranked, lines, seed) if ranked else ((), ())
    return Scoreboard(
        sample,
        len(data.rows),
        int(data.labels.sum()),
        len(data.refused),
        tuple(lines),
        silent,
        ranked[0] if ranked else None,
        ranked,
        may_be_best,
        against,
        data.caution,
        len(origins.models),
        origins.logged,
    )


def _make_line(
    name: str,
    data: ScoreMatrix,
    origins: Origins,
    values: Floats,
    curve: Sweep,
    point: AtPoint | None,
    spent: Spent,
    seed: int,
) -> Line:
    ranks = rank_with_intervals(
        curve,
        data.labels,
        values,
        rng=np.random.default_rng(seed),
        weights=data.weights,
        strata=data.strata,
        groups=data.groups,
        count=RESAMPLES,
    )
    was_run = data.was_run.get(name, np.ones(len(values), dtype=bool))
    has_score = np.isfinite(values)
    return Line(
        name=name,
        n=curve.n,
        scored=curve.scored,
        positives=curve.positives,
        not_run=int(np.count_nonzero(~was_run)),
        fitted=0,
        coverage=float(data.weights[has_score].sum() / data.weights[was_run].sum()),
        auroc=ranks.auroc,
        average_precision=ranks.average_precision,
        within=Within(curve.scored, curve.positives, curve.scored, 0)  # all alike within one model
        if name == MODEL
        else measure_within(data, origins, values, curve.flag_when, seed=seed, count=RESAMPLES),
        point=point,
        spent=spent,
    )


def _choose_point(data: ScoreMatrix, curve: Sweep, config: Config | None, saved: SavedPoint | None) -> AtPoint | None:
    """The saved threshold where it is of the same configuration, else what the default policy chooses here."""
    if curve.missing:
        return None
    other = False
    if saved is not None and config is not None:
        if saved.config_id == config.id:
            return replace(_measure_at(curve, saved.point, saved=True), segments=saved.data.segments)
        other = True
    if data.caution:
        return None
    return _measure_at(curve, choose(curve, DEFAULT), saved=False, other=other)


def _settle(store: Store, data: ScoreMatrix, config: Config | None, point: AtPoint | None) -> AtPoint | None:
    """The point with the range of its recall over every way to settle the undecided labels."""
    if point is None or config is None or not data.undecided:
        return point
    labelled = loading.load_evidence(store, config.name, config=config, basis=Basis(data.sample, data.caution))
    settled = settled_at(labelled, point.threshold)
    return replace(point, settled=settled.recall if settled else None)


def _measure_at(curve: Sweep, point: OperatingPoint, *, saved: bool, other: bool = False) -> AtPoint:
    """A chosen point as the scoreboard's labels measure it."""
    measured = figures(curve, point.threshold)
    return AtPoint(
        threshold=point.threshold,
        flag_when=curve.flag_when,
        policy=point.policy,
        saved=saved,
        feasible=saved or point.feasible,
        precision=measured.precision,
        recall=measured.recall,
        flagged=measured.true_positives + measured.false_positives,
        nearest=None if point.feasible else point,
        other=other,
    )


def _number_clusters(data: ScoreMatrix) -> Ints:
    """The group of every row, numbered."""
    return Units.among(data.groups).of


def measure_lengths(store: Store, data: ScoreMatrix) -> Floats:
    """The answers' lengths in characters: the longer, the more suspicious."""
    lengths = store.traces.answer_lengths()
    return np.array([lengths.get(row.pk, np.nan) for row in data.rows], dtype=np.float64)


def _explain_silence(store: Store, data: ScoreMatrix, name: str) -> str | Silence:
    if name == LENGTH or not data.rows:
        return Silence.WAITING if data.waiting else Silence.NO_LABELS
    basis = Basis(data.sample, data.caution)
    evidence = loading.load_evidence(store, name, config=data.configs[name], basis=basis)
    if evidence.fitted and not evidence.rows:
        return Silence.FITTED
    return next(iter(evidence.reasons), Silence.REFUSALS)


def _rank(lines: Sequence[Line]) -> tuple[str, ...]:
    """Those that can lead, the best first: all that score at least half of the labels; else all with an area."""
    able = [line for line in lines if not line.baseline and line.auroc.value is not None]
    most = [line for line in able if line.scored >= HALF * line.n] or able
    return tuple(line.name for line in sorted(most, key=lambda line: -(line.auroc.value or 0.0)))


def _compare_leader(
    data: ScoreMatrix,
    scores: Mapping[str, Floats],
    flag_when: Mapping[str, FlagWhen],
    ranked: Sequence[str],
    lines: Sequence[Line],
    seed: int,
) -> tuple[tuple[str, ...], tuple[Against, ...]]:
    """The leader against all others, turned so that more is more suspicious: those that may be better than it, and the
    comparisons with the next best and with each baseline."""
    leader, *rivals = ranked
    contest = compare_leader(
        data.labels,
        {name: suspicion(values, flag_when[name]) for name, values in scores.items()},
        leader,
        rivals,
        [line.name for line in lines if line.baseline],
        rng=np.random.default_rng(seed),
        clusters=_number_clusters(data),
        weights=np.asarray(data.weights, dtype=np.float64),
        strata=data.strata,
    )
    pairs = [*list(contest.rivals.items())[:1], *contest.baselines.items()]
    return contest.may_be_best, tuple(Against(other, result) for other, result in pairs)

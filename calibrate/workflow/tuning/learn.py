"""Learn: a head on what detectors find in answers, fitted to the labels, beside the best single detector out of fold.

Labels that fit a head are lost for its figures (workflow.evidence.counted_labels), so it is offered only where it ranks
better by more than its interval. The figures of the comparison are of folds that no fit, no penalty and no choice of
the best single detector has seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.detectors.learned import NAME
from calibrate.detectors.shared.external import is_external
from calibrate.detectors.shared.sentence_values import STATISTICS, sentence_statistics
from calibrate.errors import BadInput
from calibrate.stats.ensembles import head as heads
from calibrate.stats.ensembles import nested_cv
from calibrate.stats.ensembles.combine import FEW
from calibrate.stats.ensembles.performance import auroc_difference, auroc_within_folds, draw_resamples
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.sweep.design import Floats
from calibrate.thresholds.model import label_set_digest
from calibrate.types import HeadBase, HeadFeature, Interval, LearnedHead, Score
from calibrate.workflow.detection.configurations import configs_by_detector
from calibrate.workflow.detection.detectors import asks_chat, is_current
from calibrate.workflow.detection.team_workspace import save_head, workspace_of
from calibrate.workflow.evidence.basis import choose_basis, must_describe_traffic
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.evidence.score_matrix import ScoreMatrix, load_score_matrix
from calibrate.workflow.tuning.ensemble_data import COVERED
from calibrate.workspace import using
from db import Store
from db.scores import Config

BATCH = 500  # traces whose evidence is read at once


class LeftOut(StrEnum):
    """Why a head does not read a detector."""

    ASKS = "asks an endpoint"  # it would be asked twice
    EXTERNAL = "imported"
    SAME_LABELS = "fitted to labels"  # its baselines are of the same clean labels, which no fold would leave out
    UNAVAILABLE = "cannot run here"
    CHANGED = "changed"  # since its scores were made
    FEW = "scores too little"


@dataclass(frozen=True)
class Learning:
    """A head, fitted to all `n` labels, and how it ranks out of fold beside the best single detector.

    `best` is the detector that ranks best on all labels; `best_auroc` that of choosing it inside the folds. `coverage`
    is the share of the traffic of which any base has a score. `left_out` detectors are not read, with why. `left`
    labels did not fit it: its threshold can be chosen on them.
    """

    head: LearnedHead
    contents: tuple[str, ...]
    groups: int
    auroc: Interval
    best: str
    best_auroc: Interval
    difference: Interval
    coverage: float
    penalty: float
    left_out: Mapping[str, LeftOut]
    left: int

    @property
    def n(self) -> int:
        return self.head.n

    @property
    def positives(self) -> int:
        return self.head.positives

    @property
    def gains(self) -> bool:
        """Whether it ranks better than the best single detector by more than the interval of the difference."""
        return self.difference.low is not None and self.difference.low > 0


def learn(
    store: Store, names: Sequence[str] = (), *, sample: str | None = None, now: datetime, seed: int = 0
) -> Learning:
    """Fit a head on these detectors, or on all that a runtime can compute by itself, and judge it out of fold.

    The same seed, the same answer. Raises BadInput where the labels do not describe the traffic, are too few, or where
    there is no detector to read.
    """
    rivals = [name for name in configs_by_detector(store) if name != NAME]
    if not rivals:
        raise BadInput("no detector has scores yet: run them first (`detect all --labelled`, or the Detect page)")
    data = load_score_matrix(store, rivals, sample=sample)
    _check(data)
    left_out = _find_left_out(store, data)
    bases = _choose_bases(rivals, names, left_out)
    training = TrainingData(
        data.labels,
        np.asarray(data.weights, dtype=np.float64),
        data.groups,
        data.design,
        data.scores,
        data.scores,
        np.asarray(data.weights, dtype=np.float64),
        data.flag_when,
    )
    features = {name: read_features(store, data, name) for name in bases}
    material = heads.HeadData(data.labels, training.weights, features)
    rng = np.random.default_rng(seed)
    folds = nested_cv.repeat_folds(training, rng=rng)
    drawn = draw_resamples(training, rng=rng)
    judged = heads.judge_head(material, folds)
    best = heads.judge_best_detector(training, folds)
    fitted = heads.fit_head(material, judged.c)
    contents = tuple(row.content_hash for row in (*data.rows, *data.refused, *data.undecided))
    return Learning(
        head=_freeze(fitted, data, bases, now),
        contents=contents,
        groups=int(Units.among(data.groups).sizes.sum()),
        auroc=auroc_within_folds(training, judged.judged, drawn),
        best=heads.best_detector(training),
        best_auroc=auroc_within_folds(training, best, drawn),
        difference=auroc_difference(training, judged.judged, best, drawn),
        coverage=float(np.average(material.usable, weights=training.weights)),
        penalty=judged.c,
        left_out=left_out,
        left=_count_left(store, frozenset(contents)),
    )


def save(store: Store, learning: Learning, *, reason: str = "", by: str, now: datetime) -> None:
    """Let `learned` use this head from now on. Raises BadInput for one that does not gain, without a `reason`."""
    if not learning.gains and not reason.strip():
        raise BadInput(
            "the head is not shown to rank better than the best single detector, so nothing was saved: use that one, "
            "label more, or say why it shall be saved all the same (`--reason TEXT`)"
        )
    save_head(store, learning.head, learning.contents, by=by, now=now)


def is_in_use(store: Store, learning: Learning) -> bool:
    """Whether `learned` uses this head already."""
    head = workspace_of(store).head
    return head is not None and head.digest == learning.head.digest


def read_features(store: Store, data: ScoreMatrix, name: str) -> Floats:
    """The STATISTICS of a detector's score of every labelled trace, shape (labels, STATISTICS); NaN without one."""
    cls, config = registry.get(name), data.configs[name]
    pks = [row.pk for row in data.rows]
    evidence = {
        pk: pieces
        for begun in range(0, len(pks), BATCH)
        for pk, pieces in store.scores.evidence(config.id, pks[begun : begun + BATCH]).items()
    }
    features = np.full((len(pks), len(STATISTICS)), np.nan)
    for place, (pk, value) in enumerate(zip(pks, data.scores[name], strict=True)):
        if np.isfinite(value):
            score = Score("", float(value), evidence=evidence.get(pk, ()))
            values = sentence_statistics(score, flag_when=cls.flag_when, usual=cls.usual_threshold)
            features[place] = np.nan if values is None else values
    return features


def _count_left(store: Store, contents: Set[str]) -> int:
    """The labels that count where no sample is named, beyond those of these traces."""
    counted = count_labels(store, NOBODY, choose_basis(store, None).sample)
    return sum(row.content_hash not in contents for row in counted.rows)


def _check(data: ScoreMatrix) -> None:
    must_describe_traffic(data.caution)
    n, positives = len(data.rows), int(data.labels.sum())
    if min(positives, n - positives) < FEW:
        raise BadInput(
            f"{n} labels that count, {positives} of them hallucinated: a head is learned from at least {FEW} "
            "hallucinated and as many clean ones; label more"
        )


def _find_left_out(store: Store, data: ScoreMatrix) -> dict[str, LeftOut]:
    """The detectors that a runtime could not compute for the head, or whose scores say too little."""
    left_out = {}
    with using(workspace_of(store)):
        for name, config in data.configs.items():
            detector = registry.make(name, config.params)
            if (why := _explain(detector)) is not None:
                left_out[name] = why
            elif not is_current(store, config):
                left_out[name] = LeftOut.CHANGED
            elif np.average(np.isfinite(data.scores[name]), weights=data.weights) < COVERED:
                left_out[name] = LeftOut.FEW
    return left_out


def _explain(detector: Detector) -> LeftOut | None:
    if is_external(detector):
        return LeftOut.EXTERNAL
    if asks_chat(detector):
        return LeftOut.ASKS
    if detector.name == "entropy_z":
        return LeftOut.SAME_LABELS
    return LeftOut.UNAVAILABLE if detector.unavailable() else None


def _choose_bases(rivals: Sequence[str], names: Sequence[str], left_out: Mapping[str, LeftOut]) -> list[str]:
    bases = sorted({registry.get(name).name for name in names} or set(rivals) - set(left_out))
    for name in bases:
        if name == NAME:
            raise BadInput("a head cannot read itself: leave out learned")
        if name not in rivals:
            raise BadInput(f"{name} has no scores yet: run it first (`detect {name} --labelled`, or the Detect page)")
        if left_out.get(name) == LeftOut.CHANGED:
            raise BadInput(f"{name} has changed since its scores were made: run it again (`detect {name} --labelled`)")
        if name in left_out:
            raise BadInput(
                f"a head cannot read {name} ({left_out[name]}): leave it out; an ensemble can combine it with learned"
            )
    if not bases:
        raise BadInput("a head can read none of the detectors with scores as they are now: `detect all --labelled`")
    return bases


def _freeze(fitted: heads.FittedHead, data: ScoreMatrix, bases: Sequence[str], now: datetime) -> LearnedHead:
    return LearnedHead(
        tuple(_freeze_base(fitted, data.configs[name]) for name in sorted(bases)),
        fitted.intercept,
        len(data.rows),
        int(data.labels.sum()),
        label_set_digest((row.content_hash, str(row.gold)) for row in data.rows),
        now.replace(microsecond=0),
    )


def _freeze_base(fitted: heads.FittedHead, config: Config) -> HeadBase:
    detector = registry.make(config.name, config.params)
    mean, scale = fitted.scaling[config.name]
    rows = zip(STATISTICS, mean, scale, fitted.slopes[config.name], strict=True)
    features = tuple(HeadFeature(name, *map(float, numbers)) for name, *numbers in sorted(rows))
    return HeadBase(
        config.name,
        detector.version,
        json.dumps(registry.config_of(detector), sort_keys=True),
        detector.revision(),
        fitted.missing.get(config.name, 0.0),
        features,
    )

"""The gate of a pipeline: does each released threshold still hold what it promised, on a labelled sample?

For a team that changes a prompt, a model or a detector. The sample is of the changed system. Recall may drop by a
margin from what was measured at the release, and precision from what was promised: the guaranteed target, that of the
policy, or else what was measured. `recheck` asks about precision alone, label by label, in production; this asks once,
about both, before a change goes there. stats.monitoring.non_inferiority has the test, docs/adr/0024 the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.monitoring.non_inferiority import (
    ALPHA,
    FELL,
    Change,
    Figure,
    Forecast,
    bounded,
    compare,
    exactly,
    forecast,
    one_sided,
    planned,
)
from calibrate.thresholds.ensembles import EnsembleEntry
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Interval, Sample
from calibrate.workflow.evidence.basis import Basis, caution_of_design, must_describe_traffic, resolve_sample
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.evidence.likeness import find_doubt
from calibrate.workflow.releasing.history import promised_precision
from calibrate.workflow.watching.gate_evidence import Tested, live_names, load_tested
from db import Store

MARGIN = 0.05
Decision = Literal["holds", "fell", "too few labels"]
FigureName = Literal["recall", "precision"]
Origin = Literal["target", "measured"]


@dataclass(frozen=True)
class Promise:
    """What a release promised of one figure: a target, or what was measured on `n` labels, with a 95% interval."""

    figure: FigureName
    origin: Origin
    stated: Interval
    measured: Interval
    n: int
    confidence: float
    margin: float

    def at(self, alpha: float, *, exact: bool) -> Figure:
        """The promise with bounds at `alpha`; without any where it is a target, or is taken `exact`ly as stated."""
        assert self.stated.value is not None
        if exact or self.origin == "target":
            return exactly(self.stated.value)
        return one_sided(self.stated, confidence=self.confidence, alpha=alpha) or exactly(self.stated.value)


@dataclass(frozen=True)
class Compared:
    """A promise beside the same figure on the sample, with its 95% interval, and how far it changed."""

    promise: Promise
    now: Interval
    change: Change

    @property
    def decision(self) -> Decision:
        return "fell" if self.change.fell else "holds" if self.change.holds else "too few labels"


@dataclass(frozen=True)
class Judged:
    """One threshold of the release: each figure that it promises."""

    tested: Tested
    figures: tuple[Compared, ...]


@dataclass(frozen=True)
class Partly:
    """The figures that `more` labels would tell, where no number tells them all."""

    figures: tuple[tuple[Judged, Compared], ...]
    more: int


@dataclass(frozen=True)
class Gate:
    """What the gate found.

    `forecast`: how many more labels are likely to tell; None once it is decided. `partly`: the same of some figures,
    where no number tells all. `planned`: the labels of a sample that
    shows with a chance of 80% that all holds if nothing changed; None where no number does. `seen`: samples among these
    that the release was chosen on, by the detectors as they are now. `unlike`: those stated to be random whose scores
    are not like the other traffic's. `left`: members of the sample without a label.
    """

    file: ThresholdsFile
    sample: Sample
    judged: tuple[Judged, ...]
    exact: bool
    labels: int
    positives: int
    left: int
    at_hand: LabelsAtHand
    forecast: Forecast | None
    planned: int | None
    seen: tuple[str, ...]
    unlike: tuple[str, ...]
    partly: Partly | None = None

    @property
    def decision(self) -> Decision:
        decisions = {each.decision for row in self.judged for each in row.figures}
        return "fell" if "fell" in decisions else "holds" if decisions == {"holds"} else "too few labels"


def judge(
    store: Store,
    file: ThresholdsFile,
    samples: Sequence[str],
    *,
    only: Sequence[str] = (),
    recall_margin: float = MARGIN,
    precision_margin: float = MARGIN,
    exact: bool = False,
) -> Gate:
    """Judge the thresholds of a release on labelled samples.

    `only`: these detectors and ensembles; default all that can flag. `exact` takes measured promises as exact numbers.
    Raises BadInput where there is no answer: margins that are none, an unknown name or sample, labels that do not
    describe the traffic or are none, a detector without scores of them, a release that promises nothing.
    """
    for name, margin in (("recall", recall_margin), ("precision", precision_margin)):
        if not 0 < margin < 1:
            raise BadInput(f"--max-{name}-drop {margin:g}: give a share between 0 and 1, 0.05 for instance")
    promised = _promises(file, _choose(file, only), recall_margin, precision_margin)
    sample = _sample(store, samples)
    at_hand = labels_at_hand(store, sample)
    if not at_hand.counts.clean + at_hand.counts.hallucinated:
        raise BadInput(f"no label of the sample {sample.name!r} counts yet: label it in its order")
    family = sum(map(len, promised.values()))
    tested = load_tested(store, file, list(promised), Basis(sample))
    judged = tuple(
        Judged(row, tuple(_compare(row, promise, family, exact=exact) for promise in promised[row.name]))
        for row in tested
    )
    labels = at_hand.counts.clean + at_hand.counts.hallucinated
    gate = Gate(
        file=file,
        sample=sample,
        judged=judged,
        exact=exact,
        labels=labels,
        positives=at_hand.counts.hallucinated,
        left=at_hand.counts.total - at_hand.counts.labelled - at_hand.counts.purged,
        at_hand=at_hand,
        forecast=None,
        planned=_plan(judged, exact=exact),
        seen=_seen(file, sample) if all(row.same for row in tested) else (),
        unlike=tuple(part.name for part in sample.parts or (sample,) if find_doubt(store, part)),
    )
    return gate if gate.decision != "too few labels" else _foresee(gate)


def _sample(store: Store, samples: Sequence[str]) -> Sample:
    """The samples. They are to be drawn at random, but not to be like the traffic around them, as elsewhere: that is
    of the old system."""
    sample = resolve_sample(store, list(samples))
    assert sample is not None
    must_describe_traffic(next(filter(None, map(caution_of_design, sample.parts or (sample,))), None))
    return sample


def _choose(file: ThresholdsFile, only: Sequence[str]) -> list[str]:
    names = live_names(file)
    if not names:
        raise BadInput(f"release {file.version} has no threshold that can flag: every tier is off")
    for name in only:
        if name not in names:
            raise BadInput(f"release {file.version} has no live threshold {name!r}; it has {', '.join(names)}")
    return [name for name in names if not only or name in only]


def _promises(
    file: ThresholdsFile, names: Sequence[str], recall_margin: float, precision_margin: float
) -> dict[str, list[Promise]]:
    """What each threshold promises. One that promises nothing is left out."""
    promised = {}
    for name in names:
        entry = file.detectors.get(name) or file.ensembles[name]
        promises = [_recall(entry, recall_margin), _precision(entry, precision_margin)]
        stated = [promise for promise in promises if promise.stated.value is not None]
        if stated:
            promised[name] = stated
    if not promised:
        raise BadInput(
            f"release {file.version} promises neither recall nor precision: its thresholds were never measured; choose "
            "them on labels (`choose`), and release those"
        )
    return promised


def _recall(entry: DetectorEntry | EnsembleEntry, margin: float) -> Promise:
    metrics = entry.metrics
    return Promise("recall", "measured", metrics.recall, metrics.recall, metrics.n, metrics.confidence, margin)


def _precision(entry: DetectorEntry | EnsembleEntry, margin: float) -> Promise:
    metrics = entry.metrics
    target = promised_precision(entry) if isinstance(entry, DetectorEntry) else None
    stated, origin = (metrics.precision, "measured") if target is None else (Interval(target), "target")
    return Promise("precision", origin, stated, metrics.precision, metrics.n, metrics.confidence, margin)  # type: ignore[arg-type]


def _compare(row: Tested, promise: Promise, family: int, *, exact: bool) -> Compared:
    """A figure on the sample against its promise, in a test of `family` figures."""
    levels = (ALPHA, FELL / family)
    shown, *now = (
        getattr(figures(row.sweep, row.cut, confidence=confidence), promise.figure)
        for confidence in (0.95, *(1 - 2 * alpha for alpha in levels))
    )
    single, widest = (bounded(interval) for interval in now)
    then = (promise.at(levels[0], exact=exact), promise.at(levels[1], exact=exact))
    pair = None if single is None or widest is None else (single, widest)
    return Compared(promise, shown, compare(then, pair, promise.margin))


def _foresee(gate: Gate) -> Gate:
    """The gate with how many more labels would tell: by what the labels say, or while they say nothing by the plan."""
    changes = [each.change for row in gate.judged for each in row.figures]
    if all(change.now is not None for change in changes):
        foreseen = forecast(changes, gate.labels, rng=np.random.default_rng(gate.labels))
        return replace(gate, forecast=foreseen, partly=None if foreseen.more else _foresee_some(gate))
    more = None if gate.planned is None else max(gate.planned - gate.labels, 1)
    return replace(gate, forecast=Forecast(more, promise=more is None))


def _foresee_some(gate: Gate) -> Partly | None:
    """The open figures of which a number of labels is known that tells each; None where there are none."""

    def more(changes: Sequence[Change]) -> int | None:
        return forecast(changes, gate.labels, rng=np.random.default_rng(gate.labels)).more

    compared = [(row, each) for row in gate.judged for each in row.figures if each.decision == "too few labels"]
    tellable = [(row, each) for row, each in compared if more([each.change])]
    most = more([each.change for _, each in tellable]) if tellable else None
    return Partly(tuple(tellable), most) if most else None


def _seen(file: ThresholdsFile, sample: Sample) -> tuple[str, ...]:
    """The samples that the release was chosen on, too: the same name, drawn from as many traces."""
    chosen_on = {name: drawn.pool for name, drawn in file.data.samples.items()}
    return tuple(part.name for part in sample.parts or (sample,) if chosen_on.get(part.name) == part.pool)


def _plan(judged: Sequence[Judged], *, exact: bool) -> int | None:
    promises = [each.promise for row in judged for each in row.figures]
    pairs = []
    for promise in promises:
        measured = one_sided(promise.measured, confidence=promise.confidence)
        if measured is None:
            return None
        pairs.append((measured, promise.at(ALPHA, exact=exact)))
    return planned(pairs, [promise.margin for promise in promises], [promise.n for promise in promises])

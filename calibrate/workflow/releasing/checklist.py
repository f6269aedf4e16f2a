"""What to look at before a threshold goes out, item by item: enough evidence, disputes settled, coverage, fresh enough,
promise held. `FAILED` is what a release asks a reason for; nothing else stands in its way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from calibrate import registry
from calibrate.detectors.shared.external import is_external
from calibrate.errors import BadInput
from calibrate.types import FlagWhen, OperatingPoint, PointState, PointVerdict, Segments, StateReason, TraceFilter
from calibrate.workflow.detection.detectors import is_current
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.releasing.labels_behind import LabelsBehind, labels_behind
from calibrate.workflow.releasing.unknown_models import MIN_SHARE
from calibrate.workflow.tuning.point_state import FEWEST
from db import Store
from db.points import SavedPoint
from db.scores import Config
from db.tables.filters import NONE

ENOUGH = 30
"""Flagged labels from which a precision is worth its point estimate: its 95% interval (Clopper and Pearson) is then at
most 38 points wide."""
COVERED = 0.9
"""The share of labelled traces that a detector scores, below which what it misses is a matter of its own."""
FRESH = timedelta(days=31)
"""How old the newest labels may be: a month of traffic."""


class Item(StrEnum):
    EVIDENCE = "evidence"
    DISPUTES = "disputes"
    COVERAGE = "coverage"
    FRESH = "fresh"
    PROMISE = "promise"


class Mark(StrEnum):
    PASSED = "passed"
    CAUTION = "caution"
    FAILED = "failed"


@dataclass(frozen=True)
class Facts:
    """What the items of one threshold are decided from.

    `flagged` of the `labels` are flagged, `hits` of them hallucinated. `newest` is the moment that its labels reach to,
    `models` answer traffic since then and have no label. `changed`: the detector would score otherwise now. `is_open`:
    no threshold meets the policy.
    """

    labels: int
    flagged: int
    hits: int
    disputed: int
    coverage: float
    newest: datetime | None
    models: tuple[str, ...]
    changed: bool
    is_open: bool
    state: PointState


@dataclass(frozen=True)
class Checklist:
    """The items of one saved threshold with what they were decided from, the reason it was saved for, if any, and
    its thresholds per segment."""

    detector: str
    sample: str | None
    facts: Facts
    marks: Mapping[Item, Mark]
    reason: str
    segments: Segments | None = None
    flag_when: FlagWhen = "above"

    @property
    def worst(self) -> Mark:
        return next((mark for mark in (Mark.FAILED, Mark.CAUTION) if mark in self.marks.values()), Mark.PASSED)

    @property
    def blocks(self) -> bool:
        """Whether a release asks a reason that nobody has given yet, or takes none."""
        return self.facts.is_open or (self.facts.state.known_bad and not self.reason)


def checklist(store: Store, saved: SavedPoint, *, now: datetime, state: PointState | None = None) -> Checklist:
    """Look at a saved threshold as it stands now. `state`: what is known of it, where the caller has it."""
    state = known_bad.state_of_saved(store, saved) if state is None else state
    facts = _facts_of(store, saved, state, labels_behind(store, saved))
    reason = known_bad.reason_for(saved, state)
    return Checklist(
        saved.detector, saved.data.sample, facts, decide(facts, now), reason, saved.data.segments, saved.point.flag_when
    )


def checklists(store: Store, *, now: datetime, detectors: Collection[str] | None = None) -> tuple[Checklist, ...]:
    """Look at the saved thresholds of these detectors, or at all, by name. Raises BadInput where one has none."""
    points = store.points.latest()
    for name in detectors or ():
        if name not in points:
            registry.get(name)  # raises where there is no such detector
            raise BadInput(f"{name} has no saved operating point: `choose {name} --policy … --save` first")
    names = sorted(points if detectors is None else {*points} & {*detectors})
    return tuple(checklist(store, points[name], now=now) for name in names)


def decide(facts: Facts, now: datetime) -> dict[Item, Mark]:
    """Mark every item."""
    state = facts.state
    few = facts.flagged < ENOUGH
    overdue = facts.newest is None or now - facts.newest > FRESH
    promise = {PointVerdict.HOLDS: Mark.PASSED, PointVerdict.NOT_SHOWN: Mark.CAUTION}.get(state.verdict, Mark.FAILED)
    cautions = {
        Item.EVIDENCE: few,
        Item.DISPUTES: facts.disputed > 0,
        Item.COVERAGE: facts.coverage < COVERED,
        Item.FRESH: overdue or bool(facts.models) or facts.changed,
    }
    marks = {item: Mark.CAUTION if caution else Mark.PASSED for item, caution in cautions.items()}
    if state.known_bad and (facts.flagged < FEWEST or state.why in (StateReason.UNSTATED, StateReason.NOT_OF_TRAFFIC)):
        marks[Item.EVIDENCE] = Mark.FAILED
    if state.why == StateReason.DISPUTED and state.known_bad:
        marks[Item.DISPUTES] = Mark.FAILED
    return marks | {Item.PROMISE: Mark.FAILED if facts.is_open else promise}


def _facts_of(store: Store, saved: SavedPoint, state: PointState, behind: LabelsBehind | None) -> Facts:
    point, guarantee = saved.point, saved.point.guarantee
    flagged, hits = _flagged(point)
    if guarantee is not None and guarantee.strength == "certified":
        flagged, hits = guarantee.labels, guarantee.hallucinated
    newest = saved.data.until or saved.chosen_at
    return Facts(
        labels=saved.data.n,
        flagged=flagged,
        hits=hits,
        disputed=behind.evidence.counts.disputed if behind else 0,
        coverage=point.coverage,
        newest=newest,
        models=_models_since(store, newest, saved.data.models),
        changed=_has_changed(store, store.scores.get_config(saved.config_id)),
        is_open=not point.feasible,
        state=state,
    )


def _flagged(point: OperatingPoint) -> tuple[int, int]:
    return point.true_positives + point.false_positives, point.true_positives


def _models_since(store: Store, newest: datetime, labelled: Collection[str]) -> tuple[str, ...]:
    """The models of at least 1% of the traffic since the labels, of which no label says anything."""
    if not labelled:
        return ()
    counts = store.traces.facet(TraceFilter(since=newest, undated=False), "model")
    total = sum(counts.values())
    return tuple(name for name, n in counts.items() if name not in labelled and name != NONE and n >= MIN_SHARE * total)


def _has_changed(store: Store, config: Config) -> bool:
    """Whether a run now would score otherwise; False where its model is not here, so that nobody knows."""
    try:
        detector = registry.make(config.name, config.params)
    except BadInput:  # gone, or without a parameter that it had
        return True
    return (is_external(detector) or detector.unavailable() is None) and not is_current(store, config)

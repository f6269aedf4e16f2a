"""What is known now against saved points and live thresholds, and the guard that lets none out without a reason.

A point is judged by the labels that it was chosen on as they stand now, by its certificate's labels, and by rechecks of
its threshold. A release keeps the state of every entry, and the reason where one was needed, as its key `x-state`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from calibrate.errors import BadInput
from calibrate.orientation import flags
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.segments import name_segment
from calibrate.thresholds.states import REASON, STATE, Judged, states_in
from calibrate.types import (
    OperatingPoint,
    PointState,
    PointVerdict,
    SavedEnsemble,
    Segments,
    StateReason,
    TraceFilter,
)
from calibrate.workflow.certification.attempts import Overturned, overturned
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import basis_of_saved, caution_of_sample, is_census
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing.by_segment import as_decided
from calibrate.workflow.releasing.history import live_release
from calibrate.workflow.tuning.operating_points import choose_point, looks_of
from calibrate.workflow.tuning.point_state import (
    WITH_TARGET,
    Counted,
    chance_of,
    count_disputed,
    judge_ensemble,
    judge_point,
)
from calibrate.workflow.tuning.segments import Segmented
from db import Store
from db.points import SavedPoint


def state_of_choice(
    store: Store,
    data: Evidence,
    point: OperatingPoint,
    *,
    chance: float | None = None,
    moved_from: str | None = None,
    segments: Segments | None = None,
) -> PointState:
    """What is known now of a point chosen on these labels, and of its threshold. `chance`: `chance_of` the point, where
    the caller has it. `moved_from`: what a threshold set by hand was moved away from. With `segments`, the figures of
    the point are of each trace at its own threshold, and so is what is flagged here."""
    decided, threshold = as_decided(store, point.threshold, segments, data)
    return judge_point(
        point,
        chance=chance_of(data, point, moved_from) if chance is None else chance,
        disputed=count_disputed(decided, replace(point, threshold=threshold)),
        fell=fell_in_recheck(store, data.config.name, data.config.id, point.threshold, segments),
        moved_from=moved_from,
    )


def state_of_segments(store: Store, data: Evidence, segmented: Segmented) -> PointState | None:
    """What is known now of thresholds per segment chosen on these labels; None where there are none."""
    point = segmented.own_point
    return None if point is None else state_of_choice(store, data, point, segments=segmented.segments)


def last_target(store: Store, detector: str, now: datetime) -> str | None:
    """The policy with a target that was asked for last of a detector: that of a saved point, or what a threshold set by
    hand was moved from; else that of the live release. None where nothing was asked."""
    policies = []
    for saved in store.points.of(detector, until=now):
        policies += [saved.point.policy, (saved.data.state.moved_from if saved.data.state else None) or ""]
    live = live_release(store)
    if live is not None and detector in live.detectors:
        entry = live.detectors[detector]
        judged = next((judged for judged in states_in(live) if judged.name == detector), None)
        policies += [entry.policy, (judged.state.moved_from if judged else None) or ""]
    return next((policy for policy in policies if policy and parse(policy).kind in WITH_TARGET), None)


def state_of_saved(store: Store, saved: SavedPoint, *, live: bool = False) -> PointState:
    """What is known of a saved point now. Traffic that came after it speaks against releasing a point whose labels were
    of every trace, not against one that is `live`: that comes to every release."""
    guarantee, certified = saved.point.guarantee, saved.point.strength == "certified"
    segments = saved.data.segments
    fell = fell_in_recheck(store, saved.detector, saved.config_id, saved.point.threshold, segments)
    if certified:
        change = overturned(store, saved.detector, guarantee) if guarantee else None
        counted = Counted(change.guarantee.labels, change.hallucinated) if change else None
        return judge_point(saved.point, fell=fell, overturned=counted)
    if change := overturned_segment(store, saved.detector, segments):
        counted = Counted(change.guarantee.labels, change.hallucinated, _name_part(change))
        return judge_point(saved.point, fell=fell, overturned=counted)
    stored, moved_from = (saved.data.state.chance, saved.data.state.moved_from) if saved.data.state else (None, None)
    if _are_not_of_traffic(store, saved.data.samples):
        return PointState(PointVerdict.DO_NOT_RELEASE, StateReason.NOT_OF_TRAFFIC, figure=saved.point.precision)
    data = _load_labels(store, saved)
    if data is None:
        return judge_point(saved.point, chance=stored, fell=fell, moved_from=moved_from)
    changed = data.digest() != saved.data.label_set_digest
    point = _measure_again(store, data, saved.point, segments) if changed else saved.point
    chance = None if changed else stored
    state = state_of_choice(store, data, point, chance=chance, moved_from=moved_from, segments=segments)
    if live or saved.data.samples or state.known_bad or is_census(store):
        return state
    traces = store.traces.count(TraceFilter())
    unlabelled = traces - sum(store.labels.gold_counts().values())
    return replace(
        state,
        verdict=PointVerdict.DO_NOT_RELEASE,
        why=StateReason.UNSTATED,
        unlabelled=unlabelled,
        traces=traces,
    )


def overturned_segment(store: Store, detector: str, segments: Segments | None) -> Overturned | None:
    """The first certificate of a segment that no longer holds, as labels have changed since."""
    guarantees = (own.guarantee for _, own in sorted(segments.thresholds.items())) if segments else ()
    sure = (each for each in guarantees if each is not None and each.strength == "certified")
    return next((change for each in sure if (change := overturned(store, detector, each))), None)


def _name_part(change: Overturned) -> str | None:
    return name_segment(change.part.by, change.part.name) if change.part else None


def state_of_saved_ensemble(store: Store, saved: SavedEnsemble) -> PointState:
    """What is known of a saved ensemble now: its figures stand, unless its labels do not describe the traffic."""
    ensemble = saved.ensemble
    if _are_not_of_traffic(store, ensemble.data.samples):
        precision = ensemble.figures.precision
        return PointState(PointVerdict.DO_NOT_RELEASE, StateReason.NOT_OF_TRAFFIC, figure=precision)
    return judge_ensemble(ensemble)


def _are_not_of_traffic(store: Store, samples: Collection[str]) -> bool:
    """Whether one of these samples, by what is said of it now, does not describe the traffic."""
    parts = [sample for name in samples if (sample := store.samples.get(name))]
    return any(caution_of_sample(store, part) for part in parts)


def reason_for(saved: SavedPoint, state: PointState) -> str:
    """The reason saved with a point, if it was given for what is known against the point now; else ""."""
    same = saved.data.state is not None and saved.data.state.why == state.why
    return saved.data.reason if same and state.known_bad else ""


def fell_in_recheck(
    store: Store, detector: str, config_id: int, threshold: float, segments: Segments | None = None
) -> Counted | None:
    """The labels of a recheck that found this threshold below its target, where no later one says that it holds. With
    `segments` it is of one of these, at the segment's own threshold."""
    decided: dict[tuple[str | None, str | None], Mapping[str, Any]] = {}
    for recheck in store.rechecks.of(detector):
        segment = recheck.plan.get("segment")
        here = _threshold_there(recheck.plan.get("by"), segment, threshold, segments)
        same = (recheck.config_id, recheck.plan["threshold"]) == (config_id, here)
        if same and recheck.outcome is not None and recheck.outcome["decision"] != "go on":
            decided.setdefault((recheck.plan["model"], segment), recheck.outcome)
    for (_, segment), outcome in decided.items():
        if outcome["decision"] == "fell below":
            verdicts = [label[1] for label in outcome["labels"]]
            hits = verdicts.count("hallucinated")
            part = name_segment(segments.by, segment) if segments is not None and segment is not None else None
            return Counted(hits + verdicts.count("clean"), hits, part)
    return None


def _threshold_there(by: str | None, segment: str | None, threshold: float, segments: Segments | None) -> float | None:
    """The threshold now of the traffic that a recheck was of; None where that is not decided by one of its own."""
    if segments is None:
        return threshold if segment is None else None
    own = segments.thresholds.get(segment) if segment is not None and by == segments.by else None
    return None if own is None else own.threshold


def state_to_json(state: PointState, reason: str) -> dict[str, Any]:
    """Write a state, and the reason where there is one, as a release keeps them."""
    return {STATE: {**state.to_json(), **({REASON: reason} if reason else {})}}


def hold(file: ThresholdsFile) -> None:
    """Raises BadInput where a release would bring out what is known to be bad, without a reason."""
    refused = [judged for judged in states_in(file) if judged.state.known_bad and not judged.reason]
    if refused:
        raise BadInput(
            "; ".join(
                f"{judged.name} is known to be bad ({judged.state.why}: "
                + (
                    f"its labels were of every trace then, {judged.state.unlabelled:,} of {judged.state.traces:,} "
                    "have none now)"
                    if judged.state.why == StateReason.UNSTATED
                    else "its labels do not describe the traffic)"
                    if judged.state.why == StateReason.NOT_OF_TRAFFIC
                    else f"{judged.state.hits:,} of {judged.state.flagged:,} flagged labels are hallucinated)"
                )
                for judged in refused
            )
            + ". Choose another, put it into tier off, or say why it shall go out: `--reason TEXT`"
        )


def _load_labels(store: Store, saved: SavedPoint) -> Evidence | None:
    """The labels that a point was chosen on, as they stand now; None where they are not to be had any more."""
    try:
        config = store.scores.get_config(saved.config_id)
        basis = basis_of_saved(store, saved.data.samples)
        data = loading.load_evidence(store, saved.detector, basis=basis, config=config)
        if not saved.data.samples:  # labels of later traces were chosen who knows how
            contents = {content for content, _ in saved.data.labels}
            data = replace(data, rows=tuple(row for row in data.rows if row.content_hash in contents))
        return None if not data.rows or data.sweep.missing else data
    except BadInput:  # the detector or the sample is gone, or cannot speak for the traffic
        return None


def _measure_again(store: Store, data: Evidence, point: OperatingPoint, segments: Segments | None) -> OperatingPoint:
    """The point on labels that have changed since, each trace at its own threshold. Its bound stays where these labels
    bound as loose a threshold; with segments there is no such choice, and it goes."""
    decided, threshold = as_decided(store, point.threshold, segments, data)
    now = replace(choose_point(decided, Policy("manual", threshold)), threshold=point.threshold)
    guarantee = point.guarantee if segments is None else None
    if guarantee:
        again = choose_point(data, parse(point.policy), strength="bounded", looks=looks_of(guarantee))
        bounded = again.feasible and bool(flags(point.threshold, again.threshold, point.flag_when))
        guarantee = guarantee if bounded else None
    return replace(now, policy=point.policy, feasible=point.feasible, why=point.why, guarantee=guarantee)


def judge_live(store: Store, file: ThresholdsFile, points: Mapping[str, SavedPoint]) -> Iterator[Judged]:
    """What is known now of the thresholds and ensembles of the live release that may flag. `points` are those it was
    made from; of another the state is known that it was released with, and what a recheck found since."""
    released = {judged.name: judged for judged in states_in(file)}
    for name, entry in sorted(file.detectors.items()):
        if entry.tier == "off":
            continue
        before = released.get(name)
        if name in points:
            yield Judged(name, state_of_saved(store, points[name], live=True), before.reason if before else "")
        elif before is not None:
            yield before
    for name, entry_of_several in file.live_ensembles:
        if name in released:
            before = released[name]
            versions = store.ensembles.of(name, until=file.released_at)
            made_from = next((saved for saved in versions if saved.ensemble.rule == entry_of_several.rule), None)
            state = before.state if made_from is None else state_of_saved_ensemble(store, made_from)
            yield Judged(name, state, before.reason)

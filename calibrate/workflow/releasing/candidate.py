"""What a release would hold: the saved operating points and ensembles as the next thresholds file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

from calibrate import registry
from calibrate.detectors.shared.external import is_external
from calibrate.errors import BadInput
from calibrate.runtime.planning import revision_of
from calibrate.thresholds import baselines
from calibrate.thresholds.model import EXTERNAL, Data, DetectorEntry, Drawn, ThresholdsFile, Window, label_set_digest
from calibrate.thresholds.ranges import range_to_json
from calibrate.types import SavedEnsemble, Tier
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.releasing.entries import ensemble_of, entry_of, tiers_of
from calibrate.workflow.tuning.point_state import judge_ensemble
from calibrate.workspace import using
from db import Store
from db.points import SavedPoint
from db.releases import ReleaseRequest

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.:@/+ -]*")


def build_candidate(
    store: Store,
    request: ReleaseRequest,
    *,
    points: Mapping[str, SavedPoint],
    previous: ThresholdsFile | None,
    now: datetime,
) -> ThresholdsFile:
    """Build the file that a release of these points would be, after `previous`, the live one.

    The tier of a detector or ensemble is the one requested, else its tier in `previous`, else `signal` for a detector
    and `page` for an ensemble; how production samples a detector stays as in `previous`. Saved ensembles come in with
    the cuts they were saved with; in tier `signal` an ensemble does not page. The reason is kept as `x-reason`, and
    what is known of each point as its `x-state`, with why it goes out all the same, and what its detector can score as
    its `x-range`.

    Raises BadInput when there is nothing to release, a detector has no point, a point meets no policy or is for
    settings that never made a score, an ensemble was made from other scores than the release's, or the baselines are
    not those of the scores.
    """
    names = sorted(points if request.detectors is None else set(request.detectors))
    _check(request, names, points)
    chosen = [points[name] for name in names]
    for point in chosen:
        _refuse_never_scored(store, point)
    ensembles = [_load_ensemble(store, name) for name in sorted(set(request.ensembles))]
    tiers: dict[str, Tier] = {**(tiers_of(previous) if previous else {}), **request.tiers}
    entries = {
        point.detector: entry_of(
            store,
            point,
            tiers.get(point.detector, "signal"),
            previous,
            _state_of(store, point, request) | _about(point.detector),
        )
        for point in chosen
    }
    return ThresholdsFile(
        version=previous.version + 1 if previous else 1,
        released_at=now,
        released_by=request.by,
        note=request.full_note,
        replaces=previous.version if previous else None,
        detectors=entries,
        ensembles={
            saved.name: ensemble_of(
                saved, entries, tiers.get(saved.name, "page"), _state_of_ensemble(store, saved, request)
            )
            for saved in ensembles
        },
        data=_describe_data(store, chosen, ensembles),
        baselines=_select_baselines(store, entries.get("entropy_z")) | _select_head(store, entries.get("learned")),
        extra={"x-reason": request.reason} if request.reason else {},
    )


def _state_of(store: Store, saved: SavedPoint, request: ReleaseRequest) -> dict[str, Any]:
    """The key of an entry that says what is known of its point, and why it goes out where that is against it."""
    state = known_bad.state_of_saved(store, saved)
    reason = (known_bad.reason_for(saved, state) or request.reason) if state.known_bad else ""
    return known_bad.state_to_json(state, reason)


def _state_of_ensemble(store: Store, saved: SavedEnsemble, request: ReleaseRequest) -> dict[str, Any]:
    """The same of an ensemble. The reason that it was saved for counts for what was known then."""
    state = known_bad.state_of_saved_ensemble(store, saved)
    before = saved.ensemble.reason if state == judge_ensemble(saved.ensemble) else ""
    return known_bad.state_to_json(state, (before or request.reason) if state.known_bad else "")


def _about(name: str) -> dict[str, Any]:
    """The keys of an entry that say what its detector can score, and that a runtime is to be given its scores; none for
    one that is not installed here."""
    if name not in registry.names():
        return {}
    detector = registry.get(name)
    return range_to_json(*detector.bounds) | ({EXTERNAL: True} if is_external(detector) else {})


def _check(request: ReleaseRequest, names: Sequence[str], points: Mapping[str, SavedPoint]) -> None:
    if not names:
        raise BadInput("nothing to release: choose and save an operating point first (`choose DETECTOR --save`)")
    for name in names:
        if name not in points:
            registry.get(name)  # raises where there is no such detector
            raise BadInput(f"{name} has no saved operating point: `choose {name} --policy … --save` first")
    for name, tier in request.tiers.items():
        if name not in {*names, *request.ensembles}:
            hint = _hint(name, [*names, *request.ensembles])
            raise BadInput(f"a tier is given for {name}, which is not in this release{hint}")
        if tier not in get_args(Tier):
            raise BadInput(f"{name} has the tier {tier!r}; a tier is one of {', '.join(get_args(Tier))}")


def _refuse_never_scored(store: Store, saved: SavedPoint) -> None:
    """Refuse a point set by hand for settings that never made a score: nothing says whose scores it is about, and a
    runtime that has the models would find others than the file names."""
    if all(config.id != saved.config_id for config in store.scores.configs(saved.detector)):
        usual = registry.config_of(registry.make(saved.detector))
        params = store.scores.get_config(saved.config_id).params.items()
        options = "".join(f" --param {name}={value}" for name, value in params if value != usual.get(name))
        raise BadInput(
            f"{saved.detector}: its point {saved.point.policy} is for settings that made no score here, so no runtime "
            f"would take it: `{registry.how_to_score(saved.detector, f'--labelled{options}')}`, then choose and "
            "save it again"
        )


def _hint(name: str, names: Iterable[str]) -> str:
    """Suggest the names that a mistyped one resembles; "" if it resembles none."""
    near = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _load_ensemble(store: Store, name: str) -> SavedEnsemble:
    saved = store.ensembles.latest()
    if name not in saved:
        raise BadInput(
            f"there is no ensemble {name!r}{_hint(name, saved)}: saved are {', '.join(sorted(saved)) or 'none yet'}; "
            "`ensemble KIND --save NAME` makes one"
        )
    if not NAME.fullmatch(name):
        raise BadInput(f"a file takes names of letters, digits, spaces and _.:@/+-: save {name!r} under such a name")
    return saved[name]


def _select_baselines(store: Store, entry: DetectorEntry | None) -> dict[str, Any]:
    """The baselines by which production normalises entropies: those of the scores behind the threshold."""
    if entry is None or not entry.revision:
        return {}
    with using(workspace_of(store)):
        revision = revision_of(registry.make("entropy_z", entry.params))
    if revision != entry.revision:
        raise BadInput(
            "entropy_z: its baselines or lists of refusals have changed since the scores that its threshold was set "
            "on: `detect entropy_z --labelled`, then choose and save its point again"
        )
    return baselines.to_json(store.baselines.current(), "entropy_z")


def _select_head(store: Store, entry: DetectorEntry | None) -> dict[str, Any]:
    """The head by which production computes `learned`: the one that made the scores behind the threshold."""
    if entry is None:
        return {}
    place = workspace_of(store)
    with using(place):
        revision = revision_of(registry.make("learned", entry.params))
    if place.head is None or revision != entry.revision:
        raise BadInput(
            "learned: its head or the lists of refusals have changed since the scores that its threshold was set on: "
            "`detect learned --labelled`, then choose and save its point again"
        )
    return baselines.head_to_json(place.head)


def _describe_data(store: Store, points: list[SavedPoint], ensembles: list[SavedEnsemble]) -> Data:
    """Describe the labels behind the points. For several samples: their labels together, without a sample's name."""
    data = [point.data for point in points]
    labels = {content: verdict for each in data for content, verdict in each.labels}
    windows = {(each.since, each.until) for each in data}
    since, until = windows.pop() if len(windows) == 1 else (None, None)
    stored = {sample.name: sample for sample in store.samples.list()}
    names = {name for each in data for name in each.samples}
    names |= {name for saved in ensembles for name in saved.ensemble.data.samples}
    return Data(
        sample=_shared_value([each.sample for each in data]) if len({each.samples for each in data}) == 1 else None,
        design=_shared_value([each.design for each in data]),
        label_set_digest=label_set_digest(labels.items()),
        n=len(labels),
        positives=sum(verdict == "hallucinated" for verdict in labels.values()),
        window=Window(since, until) if since or until else None,
        models=tuple(sorted({model for each in data for model in each.models})),
        samples={
            name: Drawn(sample.design, sample.by, sample.pool, sample.size, sample.strata)
            for name in sorted(names)
            if (sample := stored.get(name))
        },
    )


def _shared_value(values: Sequence[str | None]) -> str | None:
    """The value that all share; None if they differ."""
    return values[0] if len(set(values)) == 1 else None

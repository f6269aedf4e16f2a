"""What a release would hold: the saved operating points and ensembles as the next thresholds file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.probability import JudgedMap
from calibrate.runtime.scoring import revision_of
from calibrate.thresholds import baselines
from calibrate.thresholds.ensembles import Cuts, EnsembleEntry, EnsembleMetrics
from calibrate.thresholds.model import (
    Data,
    DetectorEntry,
    Drawn,
    Metrics,
    ThresholdsFile,
    Window,
    label_set_digest,
)
from calibrate.types import Interval, Tier
from calibrate.workflow.detection.detect import workspace_of
from calibrate.workspace import using
from db import Store
from db.chosen import SavedEnsemble
from db.releases import SavedPoint, sample_names

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.:@/+ -]*")


def candidate(
    store: Store,
    *,
    detectors: Collection[str] | None = None,
    ensembles: Collection[str] = (),
    tiers: Mapping[str, Tier] | None = None,
    note: str,
    by: str,
    now: datetime,
    version: int,
    replaces: int | None,
    before: ThresholdsFile | None = None,
    reason: str = "",
) -> ThresholdsFile:
    """The file a release would hold: the latest saved point of each detector (of `detectors`, when given).

    The tier of a detector or ensemble is the one given, else the one it has in `before`, the release it replaces, else
    `signal` for a detector and `page` for an ensemble; how production samples a detector stays as in `before`. Saved
    `ensembles` come in with the cuts they were saved with; in tier `signal` an ensemble does not page. A `reason` is
    kept as `x-reason`. Raises BadInput when there is nothing to release, a detector has no saved point, a point meets
    no policy, an ensemble was made from other scores than the release's, or the baselines are not those of the scores.
    """
    saved = store.points.latest()
    names = sorted(saved if detectors is None else set(detectors))
    if not names:
        raise BadInput("nothing to release: choose and save an operating point first (`choose DETECTOR --save`)")
    for name in names:
        if name not in saved:
            registry.get(name)  # says so where there is no such detector
            raise BadInput(f"{name} has no saved operating point: `choose {name} --policy … --save` first")
    for name, tier in (tiers or {}).items():
        if name not in {*names, *ensembles}:
            hint = _near(name, [*names, *ensembles])
            raise BadInput(f"a tier is given for {name}, which is not in this release{hint}")
        if tier not in get_args(Tier):
            raise BadInput(f"{name} has the tier {tier!r}; a tier is one of {', '.join(get_args(Tier))}")
    chosen = [saved[name] for name in names]
    combined = [_saved_ensemble(store, name) for name in sorted(set(ensembles))]
    wanted: dict[str, Tier] = {**(tiers_of(before) if before else {}), **(tiers or {})}
    entries = {point.detector: entry_of(store, point, wanted.get(point.detector, "signal"), before) for point in chosen}
    return ThresholdsFile(
        version=version,
        released_at=now,
        released_by=by,
        note=note,
        replaces=replaces,
        detectors=entries,
        ensembles={one.name: ensemble_of(one, entries, wanted.get(one.name, "page")) for one in combined},
        data=_data(store, chosen, combined),
        baselines=_baselines(store, entries.get("entropy_z")),
        extra={"x-reason": reason} if reason else {},
    )


def _baselines(store: Store, entry: DetectorEntry | None) -> dict[str, Any]:
    """What production is to normalise entropies by: what the scores behind the threshold were normalised by."""
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


def tiers_of(before: ThresholdsFile) -> dict[str, Tier]:
    """The tiers of the release that is live."""
    tiers: dict[str, Tier] = {name: entry.tier for name, entry in before.detectors.items()}
    for name, one in before.ensembles.items():
        tiers[name] = "page" if one.cuts.page is not None else "off" if one.cuts.signal is None else "signal"
    return tiers


def _near(name: str, known: Iterable[str]) -> str:
    """What was probably meant by a name that is not known; "" where nothing is like it."""
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def entry_of(store: Store, saved: SavedPoint, tier: Tier, before: ThresholdsFile | None) -> DetectorEntry:
    """A saved point as a release has it, sampled as in `before`. Raises BadInput for a point that meets no policy."""
    config = store.scores.get_config(saved.config_id)
    point = saved.point
    if not point.feasible:
        raise BadInput(
            f"{saved.detector}: no threshold meets {point.policy} ({point.why}); choose another policy, or save "
            "the nearest point on purpose with --policy manual:THRESHOLD"
        )
    probability_map = saved.data.probability_map
    return DetectorEntry(
        version=config.version,
        params=config.params,
        revision=config.revision,
        flag_when=point.flag_when,
        threshold=point.threshold,
        tier=tier,
        policy=point.policy,
        metrics=Metrics(point.precision, point.recall, point.fpr, point.flag_rate, point.n, point.positives),
        coverage=point.coverage,
        feasible=point.feasible,
        guarantee=point.guarantee,
        probability_map=None if probability_map is None else JudgedMap.from_json(probability_map),
        sampling=before.detectors[saved.detector].sampling if before and saved.detector in before.detectors else None,
    )


def _saved_ensemble(store: Store, name: str) -> SavedEnsemble:
    saved = store.ensembles.latest()
    if name not in saved:
        known = f"saved are {', '.join(sorted(saved))}" if saved else "none is saved yet"
        raise BadInput(
            f"there is no ensemble {name!r}{_near(name, saved)}: {known}; `ensemble KIND --save NAME` makes one"
        )
    if not NAME.fullmatch(name):
        raise BadInput(f"a file takes names of letters, digits, spaces and _.:@/+-: save {name!r} under such a name")
    return saved[name]


def ensemble_of(saved: SavedEnsemble, entries: Mapping[str, DetectorEntry], tier: Tier) -> EnsembleEntry:
    """A saved ensemble as a release of these detectors has it. Raises BadInput where that has not the scores that it
    was made from: nothing known of it holds for others."""
    document = saved.document
    for name, made in sorted(document["detectors"].items()):
        if name not in entries:
            raise BadInput(
                f"the ensemble {saved.name} reads {name}, which is not in this release: save an operating point for "
                f"it (`choose {name} --policy … --save`) and release it, as tier off if it should not flag by itself"
            )
        here = entries[name]
        differ = [part for part in ("version", "params", "revision") if made[part] != getattr(here, part)]
        if differ:
            differing = "; ".join(f"{part} {made[part]!r}, here {getattr(here, part)!r}" for part in differ)
            raise BadInput(
                f"the ensemble {saved.name} was made from other scores of {name} than this release has "
                f"({differing}): "
                "make it again and save it, or save the point of those scores"
            )
    cuts = {of: document["cuts"][of]["threshold"] for of in ("page", "signal")}
    precision, recall, flag_rate = (Interval(**document["figures"][of]) for of in ("precision", "recall", "flag_rate"))
    return EnsembleEntry(
        rule=document["rule"],
        members=tuple(sorted(document["detectors"])),
        cuts=Cuts(cuts["page"] if tier == "page" else None, cuts["signal"] if tier != "off" else None),
        metrics=EnsembleMetrics(precision, recall, flag_rate, document["data"]["n"], document["data"]["positives"]),
        budget=document["budget"],
    )


def _data(store: Store, points: list[SavedPoint], ensembles: list[SavedEnsemble]) -> Data:
    """What the points rest on. Points of several samples: their labels together, and no single sample's name."""
    data = [point.data for point in points]
    labels = {content: verdict for each in data for content, verdict in each.labels}
    windows = {(each.since, each.until) for each in data}
    since, until = windows.pop() if len(windows) == 1 else (None, None)
    stored = {sample.name: sample for sample in store.samples.list()}
    names = {name for each in data for name in each.samples}
    names |= {name for ensemble in ensembles for name in sample_names(ensemble.document["data"], stored)}
    return Data(
        sample=_shared([each.sample for each in data]) if len({each.samples for each in data}) == 1 else None,
        design=_shared([each.design for each in data]),
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


def _shared(values: Sequence[str | None]) -> str | None:
    """The value that all have; None where they differ."""
    return values[0] if len(set(values)) == 1 else None

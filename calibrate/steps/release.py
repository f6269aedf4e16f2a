"""Release: the saved operating points become the next version of the thresholds file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import get_args

from calibrate.errors import BadInput, TouchstoneError
from calibrate.probability import JudgedMap
from calibrate.steps.attempts import overturned
from calibrate.thresholds import files
from calibrate.thresholds.ensembles import Cuts, EnsembleEntry, EnsembleMetrics
from calibrate.thresholds.model import (
    Data,
    DetectorEntry,
    Drawn,
    Metrics,
    ThresholdsFile,
    Window,
    from_json,
    label_set_digest,
)
from calibrate.types import Guarantee, Interval, Strength, Tier
from db import Store
from db.chosen import SavedEnsemble
from db.releases import Release, SavedPoint

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
) -> ThresholdsFile:
    """The file a release would hold: the latest saved point of each detector (of `detectors`, when given).

    A detector's tier is the one given, else the one it has in `before`, the release it replaces, else `signal`; how
    production samples it stays as in `before`. Saved `ensembles` come in with the cuts they were saved with; in tier
    `signal` an ensemble does not page. Raises BadInput when there is nothing to release, a detector has no saved point,
    a point meets no policy, or an ensemble was made from other scores than the release's.
    """
    saved = store.points.latest()
    names = sorted(saved if detectors is None else set(detectors))
    if not names:
        raise BadInput("nothing to release: choose and save an operating point first (`choose DETECTOR --save`)")
    for name in names:
        if name not in saved:
            raise BadInput(f"{name} has no saved operating point: `choose {name} --policy … --save` first")
    for name, tier in (tiers or {}).items():
        if name not in {*names, *ensembles}:
            raise BadInput(f"a tier is given for {name}, which is not in this release")
        if tier not in get_args(Tier):
            raise BadInput(f"{name} has the tier {tier!r}; a tier is one of {', '.join(get_args(Tier))}")
    chosen = [saved[name] for name in names]
    combined = [_saved_ensemble(store, name) for name in sorted(set(ensembles))]
    standing: dict[str, Tier] = {name: entry.tier for name, entry in before.detectors.items()} if before else {}
    wanted: dict[str, Tier] = {**standing, **(tiers or {})}
    entries = {point.detector: _entry(store, point, wanted.get(point.detector, "signal"), before) for point in chosen}
    return ThresholdsFile(
        version=version,
        released_at=now,
        released_by=by,
        note=note,
        replaces=replaces,
        detectors=entries,
        ensembles={one.name: _ensemble(one, entries, (tiers or {}).get(one.name, "page")) for one in combined},
        data=_data(store, chosen, combined),
    )


def release(
    store: Store,
    *,
    detectors: Collection[str] | None = None,
    ensembles: Collection[str] = (),
    tiers: Mapping[str, Tier] | None = None,
    note: str,
    by: str,
    now: datetime,
    out: Path | None = None,
    expect: int | None = None,
) -> Release:
    """Releases version n+1: in the store and, with `out`, as a file. Both or neither.

    The file is written beside `out` before the store commits and renamed after, so a full disk releases nothing.
    A process killed between the two leaves the version in the store; `again` writes its file. With `expect`, nothing is
    released when the next version is another one: somebody released since the caller looked.
    """

    def make(version: int, previous: str | None) -> str:
        if expect is not None and version != expect:
            raise BadInput(f"version {version - 1} was released in the meantime: look at what it changed, then go on")
        replaces = version - 1 if previous is not None else None
        file = candidate(
            store,
            detectors=detectors,
            ensembles=ensembles,
            tiers=tiers,
            note=note,
            by=by,
            now=now,
            version=version,
            replaces=replaces,
            before=from_json(json.loads(previous)) if previous is not None else None,
        )
        made.append(file)
        return files.render(file)

    made: list[ThresholdsFile] = []
    staged: list[files.Staged] = []
    with ExitStack() as leftovers:  # takes the temporary file away should the store refuse
        with store.releases.adding(make, by=by, note=note, now=now) as row:
            if out is not None:
                staged.append(leftovers.enter_context(files.stage(made[0], out)))
        for pending in staged:
            _put(pending, row.version)
    return row


def _put(pending: files.Staged, version: int) -> None:
    try:
        pending.commit()
    except TouchstoneError as error:
        raise TouchstoneError(
            f"version {version} is in the store, but not in its place as a file: {error}. "
            f"`release --again {version}` writes it"
        ) from error


def again(store: Store, version: int, out: Path) -> Release:
    """Writes a version that was released before, byte for byte."""
    row = store.releases.get(version)
    if row is None:
        raise BadInput(f"there is no release {version}; the newest is {_newest(store)}")
    files.write(read(row), out)
    return row


def stale(store: Store, file: ThresholdsFile) -> list[str]:
    """The certificates in a release whose labels have changed since."""
    said = (
        overturned(store, name, entry.guarantee)
        for name, entry in sorted(file.detectors.items())
        if entry.guarantee is not None and entry.guarantee.strength == "certified"
    )
    return [one for one in said if one]


def cautions(file: ThresholdsFile) -> list[str]:
    """What somebody who releases this should know: what would page people without a certified precision."""
    said = (caution(name, entry.tier, entry.strength) for name, entry in sorted(file.detectors.items()))
    paging = [name for name, entry in sorted(file.ensembles.items()) if entry.cuts.page is not None]
    return [one for one in said if one] + [
        f"the ensemble {name} pages people, and its precision is bounded, not certified: release it as signal "
        f"(`--tier {name}=signal`), or watch what it flags"
        for name in paging
    ]


def caution(name: str, tier: Tier, strength: Strength) -> str | None:
    """What to know before a detector goes into a tier; None where there is nothing to say."""
    if tier != "page" or strength == "certified":
        return None
    return (
        f"{name} pages people, and its precision is {strength}, not certified: certify it first (`certify {name}`, or "
        "the Tune page), or release it as signal"
    )


def read(row: Release) -> ThresholdsFile:
    return from_json(json.loads(row.document))


def _newest(store: Store) -> str:
    rows = store.releases.list()
    return str(rows[0].version) if rows else "none: nothing was released yet"


def _entry(store: Store, saved: SavedPoint, tier: Tier, before: ThresholdsFile | None) -> DetectorEntry:
    config = store.scores.get_config(saved.config_id)
    point = saved.point
    if not point["feasible"]:
        raise BadInput(
            f"{saved.detector}: no threshold meets {point['policy']} ({point['why']}); choose another policy, or save "
            "the nearest point on purpose with --policy manual:THRESHOLD"
        )
    precision, recall, fpr, flag_rate = (
        Interval(**point[name]) for name in ("precision", "recall", "fpr", "flag_rate")
    )
    return DetectorEntry(
        version=config.version,
        params=config.params,
        revision=config.revision,
        flag_when=point["flag_when"],
        threshold=point["threshold"],
        tier=tier,
        policy=point["policy"],
        metrics=Metrics(precision, recall, fpr, flag_rate, point["n"], point["positives"]),
        coverage=point["coverage"],
        feasible=point["feasible"],
        guarantee=guarantee_of(saved),
        probability_map=JudgedMap.from_json(kept) if (kept := saved.data.get("probability_map")) else None,
        sampling=before.detectors[saved.detector].sampling if before and saved.detector in before.detectors else None,
    )


def _saved_ensemble(store: Store, name: str) -> SavedEnsemble:
    saved = store.ensembles.latest()
    if name not in saved:
        known = f"saved are {', '.join(sorted(saved))}" if saved else "none is saved yet"
        raise BadInput(f"there is no ensemble {name!r}: {known}; `ensemble KIND --save NAME` makes one")
    if not NAME.fullmatch(name):
        raise BadInput(f"a file takes names of letters, digits, spaces and _.:@/+-: save {name!r} under such a name")
    return saved[name]


def _ensemble(saved: SavedEnsemble, entries: Mapping[str, DetectorEntry], tier: Tier) -> EnsembleEntry:
    """Raises BadInput where the release has not the scores that the ensemble was made from: nothing known of it holds
    for others."""
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


def guarantee_of(saved: SavedPoint) -> Guarantee | None:
    """What is more than measured about a saved point."""
    kept = saved.point.get("guarantee")  # not there in points saved before there were guarantees
    return Guarantee(**kept) if kept else None


def _data(store: Store, points: list[SavedPoint], ensembles: list[SavedEnsemble]) -> Data:
    """What the points rest on. Points of several samples: their labels together, and no single sample's name."""
    labels = {content: verdict for point in points for content, verdict in point.data["labels"]}
    about = [point.data for point in points]
    windows = {tuple(data["window"]) for data in about}
    since, until = windows.pop() if len(windows) == 1 else (None, None)
    window = Window(_time(since), _time(until)) if since or until else None
    return Data(
        sample=_same([data["sample"] for data in about]),
        design=_same([data["design"] for data in about]),
        label_set_digest=label_set_digest(labels.items()),
        n=len(labels),
        positives=sum(verdict == "hallucinated" for verdict in labels.values()),
        window=window,
        models=tuple(sorted({model for data in about for model in data["models"]})),
        samples=_samples(store, {data["sample"] for data in [*about, *(one.document["data"] for one in ensembles)]}),
    )


def _samples(store: Store, names: Iterable[str | None]) -> dict[str, Drawn]:
    """How the samples of these names were drawn. Several that were used as one are named "W46 + W47"."""
    found = {}
    for name in filter(None, names):
        for part in [name] if store.samples.get(name) else name.split(" + "):
            if one := store.samples.get(part):
                found[one.name] = Drawn(one.design, one.by, one.pool, one.size, one.strata)
    return found


def _same(values: list[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None

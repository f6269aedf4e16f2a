"""Release: the saved operating points become the next version of the thresholds file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import get_args

from calibrate.errors import BadInput, TouchstoneError
from calibrate.probability import JudgedMap
from calibrate.thresholds import files
from calibrate.thresholds.model import Data, DetectorEntry, Metrics, ThresholdsFile, Window, from_json, label_set_digest
from calibrate.types import Guarantee, Interval, Strength, Tier
from db import Store
from db.releases import Release, SavedPoint


def candidate(
    store: Store,
    *,
    detectors: Collection[str] | None = None,
    tiers: Mapping[str, Tier] | None = None,
    note: str,
    by: str,
    now: datetime,
    version: int,
    replaces: int | None,
    before: ThresholdsFile | None = None,
) -> ThresholdsFile:
    """The file a release would hold: the latest saved point of each detector (of `detectors`, when given).

    A detector's tier is the one given, else the one it has in `before`, the release it replaces, else `signal`.
    Raises BadInput when there is nothing to release, a detector has no saved point, or a point meets no policy.
    """
    saved = store.points.latest()
    names = sorted(saved if detectors is None else set(detectors))
    if not names:
        raise BadInput("nothing to release: choose and save an operating point first (`choose DETECTOR --save`)")
    for name in names:
        if name not in saved:
            raise BadInput(f"{name} has no saved operating point: `choose {name} --policy … --save` first")
    for name, tier in (tiers or {}).items():
        if name not in names:
            raise BadInput(f"a tier is given for {name}, which is not in this release")
        if tier not in get_args(Tier):
            raise BadInput(f"{name} has the tier {tier!r}; a tier is one of {', '.join(get_args(Tier))}")
    chosen = [saved[name] for name in names]
    standing: dict[str, Tier] = {name: entry.tier for name, entry in before.detectors.items()} if before else {}
    wanted: dict[str, Tier] = {**standing, **(tiers or {})}
    return ThresholdsFile(
        version=version,
        released_at=now,
        released_by=by,
        note=note,
        replaces=replaces,
        detectors={point.detector: _entry(store, point, wanted.get(point.detector, "signal")) for point in chosen},
        data=_data(chosen),
    )


def release(
    store: Store,
    *,
    detectors: Collection[str] | None = None,
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


def cautions(file: ThresholdsFile) -> list[str]:
    """What somebody who releases this should know: the detectors that would page without a certified precision."""
    said = (caution(name, entry.tier, entry.strength) for name, entry in sorted(file.detectors.items()))
    return [one for one in said if one]


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


def _entry(store: Store, saved: SavedPoint, tier: Tier) -> DetectorEntry:
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
    )


def guarantee_of(saved: SavedPoint) -> Guarantee | None:
    """What is more than measured about a saved point."""
    kept = saved.point.get("guarantee")  # not there in points saved before there were guarantees
    return Guarantee(**kept) if kept else None


def _data(points: list[SavedPoint]) -> Data:
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
    )


def _same(values: list[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None

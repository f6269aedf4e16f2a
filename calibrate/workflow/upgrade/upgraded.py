"""The detectors of a release as they would run today: what of each is no longer as it was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrate import registry
from calibrate.detectors.base import Detector
from calibrate.errors import BadInput
from calibrate.thresholds.model import DetectorEntry
from calibrate.types import TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workspace import using
from db import Store
from db.scores import Config


@dataclass(frozen=True)
class Due:
    """A detector of the live release as it would run today. `changes` says what differs from the release, "version 1 →
    2"; empty where nothing does. `missing` says why it cannot run here. `waiting` of the labelled traces lack a score
    of it."""

    name: str
    entry: DetectorEntry
    detector: Detector | None
    config: Config | None
    changes: tuple[str, ...]
    missing: str | None
    waiting: int


def due_of(store: Store, name: str, entry: DetectorEntry, params: Mapping[str, Any]) -> Due:
    """The released detector with the parameters of its entry, but for `params` that it has."""
    if name not in registry.names():
        return Due(name, entry, None, None, (), "no detector of this name is installed here", 0)
    known = {one.name for one in registry.parameters(registry.get(name))}
    # A parameter that the detector no longer has goes, and one that is new takes its default.
    wanted = {key: value for key, value in {**entry.params, **params}.items() if key in known}
    try:
        detector = registry.make(name, wanted)
    except BadInput as error:  # a value that it no longer takes
        return Due(name, entry, None, None, (), str(error), 0)
    with using(detect.workspace_of(store)):
        missing = detector.unavailable()
    if missing:
        return Due(name, entry, detector, None, (), missing, 0)
    config = store.scores.get_config(detect.config_id(store, detector))
    waiting = len(store.traces.lacking(TraceFilter(label="labelled"), [config.id]))
    return Due(name, entry, detector, config, differences(entry, config), None, waiting)


def differences(entry: DetectorEntry, config: Config) -> tuple[str, ...]:
    """What of a detector is not as the release has it, in words."""
    pairs: list[tuple[str, Any, Any]] = [("version", entry.version, config.version)]
    pairs.append(("revision", entry.revision or "none", config.revision or "none"))
    for name in sorted({*entry.params, *config.params}):
        pairs.append((name, entry.params.get(name, "none"), config.params.get(name, "none")))
    return tuple(f"{what} {_short(before)} → {_short(after)}" for what, before, after in pairs if before != after)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:24]}…{text[-12:]}"

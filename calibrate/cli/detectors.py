"""`detectors`."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import store, table
from calibrate.errors import BadInput, StoreError
from calibrate.workflow.detection import detect as step
from calibrate.workspace import Workspace, using


def run(args: Namespace) -> Answer:
    with using(_team(args)):
        found = [_about(name) for name in registry.names()]
    rows = [("detector", "flags when", "needs", "model", "default parameters")]
    for one in found:
        params = ", ".join(f"{key}={value}" for key, value in one["params"].items())
        rows.append((one["name"], one["flag_when"], ", ".join(one["needs"]), one["model"], params))
    return Answer({"detectors": found}, table(rows))


def _team(args: Namespace) -> Workspace:
    """The workspace of the store; an empty one where there is no store yet and none was named."""
    try:
        return step.workspace_of(store(args))
    except (BadInput, StoreError):
        if args.store:
            raise
        return Workspace()


def _about(name: str) -> dict[str, Any]:
    detector = registry.make(name, None)
    missing = detector.unavailable()
    return {
        "name": name,
        "title": detector.title,
        "measures": " ".join((type(detector).__doc__ or "").split()),
        "unit": detector.unit,
        "flag_when": detector.flag_when,
        "usual_threshold": detector.usual_threshold,
        "needs": sorted(detector.needs),
        "params": registry.config_of(detector),
        "version": detector.version,
        "revision": detector.revision() if missing is None else None,
        "model": "missing" if missing else ("ready" if detector.revision() else "none needed"),
        "unavailable": missing,
    }

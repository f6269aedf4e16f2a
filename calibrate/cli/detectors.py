"""`detectors`: list the detectors, what each needs, and its default parameters."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.errors import BadInput, StoreError
from calibrate.workflow.detection.detectors import status_here
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workspace import Workspace, using


@dataclass(frozen=True, slots=True)
class DetectorDocument:
    """A detector with its default parameters. `unavailable` says what it lacks, None where it can run."""

    name: str
    title: str
    measures: str
    unit: str
    flag_when: str
    usual_threshold: float | None
    needs: Sequence[str]
    params: Mapping[str, object]
    version: str
    revision: str | None
    model: str
    unavailable: str | None


@dataclass(frozen=True, slots=True)
class DetectorsDocument:
    detectors: Sequence[DetectorDocument]


def run(args: Namespace) -> Answer:
    with using(_workspace(args)):
        detectors = [_describe(name) for name in registry.names()]
    rows = [("detector", "flags when", "needs", "model", "default parameters"), *map(_row, detectors)]
    return Answer(DetectorsDocument(detectors), table(rows))


def _workspace(args: Namespace) -> Workspace:
    """The workspace of the store; an empty one where no store exists yet and none was named."""
    try:
        return workspace_of(open_store(args))
    except (BadInput, StoreError):
        if args.store:
            raise
        return Workspace()


def _describe(name: str) -> DetectorDocument:
    detector = registry.make(name, None)
    status = status_here(detector)
    return DetectorDocument(
        name=name,
        title=detector.title,
        measures=" ".join((type(detector).__doc__ or "").split()),
        unit=detector.unit,
        flag_when=detector.flag_when,
        usual_threshold=detector.usual_threshold,
        needs=sorted(detector.needs),
        params=registry.config_of(detector),
        version=detector.version,
        revision=None if status.state == "missing" else status.revision,
        model="none needed" if status.state == "no model needed" else status.state,
        unavailable=status.how,
    )


def _row(detector: DetectorDocument) -> tuple[str, ...]:
    params = ", ".join(f"{key}={value}" for key, value in detector.params.items())
    return detector.name, detector.flag_when, ", ".join(detector.needs), detector.model, params

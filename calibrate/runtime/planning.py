"""The detectors of a release, made as the release configures them; those that cannot be are planned with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from calibrate import workspace
from calibrate.errors import TouchstoneError
from calibrate.runtime import rules
from calibrate.thresholds.ensembles import list_members
from calibrate.thresholds.model import DetectorEntry, Sampling, ThresholdsFile
from calibrate.types import Baseline, LearnedHead, ScoreStatus, Trace, attribute_text

if TYPE_CHECKING:
    from calibrate.detectors.base import Detector
    from calibrate.runtime.scoring import Scored


NOT_GIVEN = "its score is computed elsewhere, and none was given"
"""Why an external detector of a release has no score."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The detectors of a release, constructed. `good_until` is a time.monotonic()."""

    file: ThresholdsFile
    baselines: Mapping[tuple[str, str], Baseline]
    detectors: list[PlannedDetector]
    good_until: float
    head: LearnedHead | None = None

    def put_in_place(self) -> None:
        """Let detectors use the release's baselines and head. What it has none of, this process's own stay."""
        here = workspace.current()
        place = replace(here, baselines=self.baselines or here.baselines, head=self.head or here.head)
        if (place.baselines, place.head) != (here.baselines, here.head):
            workspace.use(place)


@dataclass(frozen=True, slots=True)
class PlannedDetector:
    """A detector of a release. If it cannot score, `detector` is None and `problem` and `status` say why.

    `is_external`: its scores come from elsewhere, with every answer.

    `cascades` are the rules that read it only behind their filters; empty if anything reads it on every trace.
    """

    name: str
    sampling: Sampling | None
    cascades: tuple[Mapping[str, Any], ...]
    detector: Detector | None = None
    problem: str | None = None
    status: ScoreStatus = "failed"
    is_external: bool = False

    def reason_to_skip(self, result: Scored) -> str | None:
        """Say why the detector is not to run on this trace, given the others' scores. None if it is."""
        if self.sampling is not None and not is_sampled(self.sampling, self.name, result.trace):
            return f"runs on {self.sampling}"
        if self.cascades and not any(rules.passes(rule, result.numbers) for rule in self.cascades):
            return "the filter of its cascade does not pass"
        return None


def is_sampled(sampling: Sampling, detector: str, trace: Trace) -> bool:
    """Decide whether production runs a detector on a trace. Every process decides alike.

    Parameters
    ----------
    sampling : Sampling
        The detector's sampling in the release.
    detector : str
        Its name.
    trace : Trace

    Returns
    -------
    bool
    """
    attributes = trace.attributes
    if any(attribute_text(attributes.get(name)) != value for name, value in sampling.only_when.items()):
        return False
    digest = blake2b(f"{detector}\0{trace.id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < sampling.rate * 2**64


def revision_of(detector: Detector) -> str:
    """Name the revision of everything behind a score but the detector itself, as releases record it.

    That is the models, and the team's own lists of refusals if the detector skips refusals: they decide which answers
    are scored at all.

    Parameters
    ----------
    detector : Detector

    Returns
    -------
    str
        Empty if the detector has no model and the lists are the packaged ones.
    """
    from calibrate.backends.text import refusals

    lists = "" if getattr(type(detector), "scores_refusals", False) else refusals.version()
    return "+".join(filter(None, (detector.revision(), lists and f"refusals:{lists}")))


def plan_detector(file: ThresholdsFile, name: str) -> PlannedDetector:
    """Make a detector as the release configures it.

    Parameters
    ----------
    file : ThresholdsFile
        The release.
    name : str
        Of one of its detectors.

    Returns
    -------
    PlannedDetector
        With the reason where this process cannot make it.
    """
    entry = file.detectors[name]
    planned = PlannedDetector(name, entry.sampling, _find_cascades(file, name))
    if entry.is_external:
        return replace(planned, problem=NOT_GIVEN, status="abstained", is_external=True)
    try:
        from calibrate import registry

        detector = registry.make(name, entry.params)
        if (problem := detector.unavailable()) is not None:
            return replace(planned, problem=problem, status="abstained")
        problem = _find_mismatch(detector, entry)
    except TouchstoneError as error:
        return replace(planned, problem=str(error))
    except Exception as error:  # a detector from another package
        return replace(planned, problem=f"{type(error).__name__}: {str(error)[:200]}")
    return replace(planned, problem=problem) if problem else replace(planned, detector=detector)


def _find_mismatch(detector: Detector, entry: DetectorEntry) -> str | None:
    for aspect, actual in (("version", detector.version), ("revision", revision_of(detector))):
        released = getattr(entry, aspect)
        if actual != released:
            return (
                f"the threshold was set on scores of {aspect} {released or '(none)'}; here it is {actual or '(none)'}. "
                "Install what the release names, or recalibrate and release"
            )
    return None


def _find_cascades(file: ThresholdsFile, name: str) -> tuple[Mapping[str, Any], ...]:
    readers = [entry.rule for _, entry in file.live_ensembles if name in entry.members]
    behind = all(
        rule["form"] == "cascade"
        and rule["expensive"] == name
        and all(member.detector != name for member in list_members(rule["filter"]))
        for rule in readers
    )
    return tuple(readers) if behind and file.detectors[name].tier == "off" else ()

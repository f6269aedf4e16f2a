"""The interface of a detector: a frozen dataclass. Its fields are its parameters, its class variables describe it.

    @dataclass(frozen=True)
    class TokenOverlap:
        name: ClassVar[str] = "token_overlap"
        ...
        variant: Literal["default", "plain"] = "default"

        def score(self, traces): ...

One file with such a class in `calibrate/detectors/` adds a detector to the registry, forms, contract test and tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from calibrate.types import PURGED, Evidence, FlagWhen, Score, Trace


@runtime_checkable
class Detector(Protocol):
    """Turns a trace into a score; knows what it needs and when it must abstain.

    `needs` names required Trace fields ("answer", "question", "sources", "context", "tokens", "alternatives", "schema";
    sources count as context too; "retrieved" is sources of which not even a text need be logged); the runner abstains
    for the detector if one is missing.
    `score` yields exactly one Score per trace, in order, and never raises because of a single trace.

    More class variables are optional: `batch` (int), the number of traces that a run passes at once, for
    detectors that wait more than they compute; `scores_refusals` (bool), to score answers that decline to answer too;
    `also_needs`, fields without which it abstains by itself ("retrieval_scores"), so that a page can tell beforehand;
    `needs_gpu` (bool) and `memory` (bytes), what a worker of a cluster must have to run it.
    """

    name: ClassVar[str]
    version: ClassVar[str]  # raise it when the same input may score differently
    title: ClassVar[str]  # "Token overlap"
    unit: ClassVar[str]  # what the value is, in words: "share of answer words found in the context"
    needs: ClassVar[frozenset[str]]
    flag_when: ClassVar[FlagWhen]
    bounds: ClassVar[tuple[float, float]]  # lowest and highest possible value
    usual_threshold: ClassVar[float]  # what common recipes use; never applied silently

    def revision(self) -> str:
        """Identify the models behind the score ("" for none); part of the cache key."""
        ...

    def unavailable(self) -> str | None:
        """Say why the detector cannot run here, and the remedy; None if it can. Must be cheap: load no model."""
        ...

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]: ...


def scored(trace: Trace, value: float, evidence: Sequence[Evidence] = ()) -> Score:
    """Make a score with a finite value in the detector's own units."""
    return Score(trace.id, float(value), evidence=tuple(evidence))


def abstained(trace: Trace, reason: str) -> Score:
    """Make a score without a value because the trace lacks what the detector needs. That is not a verdict."""
    return Score(trace.id, None, reason, "abstained")


def failed(trace: Trace, reason: str) -> Score:
    """Make a score without a value because something went wrong."""
    return Score(trace.id, None, reason, "failed")


def missing(needs: frozenset[str], trace: Trace) -> str | None:
    """Name the first need that the trace does not meet, as a reason; None if it meets all. A purged one meets none."""
    if trace.purged_at is not None:
        return PURGED
    present = trace.presence
    words = {"answer": "empty answer", "alternatives": "fewer than two alternatives", "retrieved": "no sources"}
    for need in sorted(needs):
        if not present[need]:
            return words.get(need, f"no {need}")
    return None

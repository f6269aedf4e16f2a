"""What a detector is: a frozen dataclass whose fields are its parameters; its class variables say the rest.

    @dataclass(frozen=True)
    class TokenOverlap:
        name: ClassVar[str] = "token_overlap"
        ...
        variant: Literal["default", "plain"] = "default"

        def score(self, traces): ...

Adding one file with such a class to `calibrate/detectors/` adds the detector: registry, form, contract test, tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from calibrate.types import Evidence, FlagWhen, Score, Trace


@runtime_checkable
class Detector(Protocol):
    """Turns a trace into a score; knows what it needs and when it must abstain.

    `needs` names Trace fields that must be there ("answer", "sources", "context", "tokens", "alternatives", "schema";
    "context" is met by sources too); the runner abstains for the detector where one is missing.
    `score` yields exactly one Score per trace, in order, and never raises for one bad trace.

    Two more class variables are optional: `batch` (int), how many traces a run hands over at once, for detectors that
    wait more than they compute; `scores_refusals` (bool), when an answer that declines to answer is to be scored too.
    """

    name: ClassVar[str]
    version: ClassVar[str]  # bump it when the same input may score differently
    title: ClassVar[str]  # "Token overlap"
    unit: ClassVar[str]  # what the value is, in words: "share of answer words found in the context"
    needs: ClassVar[frozenset[str]]
    flag_when: ClassVar[FlagWhen]
    bounds: ClassVar[tuple[float, float]]  # least and greatest possible value
    usual_threshold: ClassVar[float]  # what the common recipe uses; never used silently

    def revision(self) -> str:
        """Identity of the models behind the score ("" for none); part of the cache key."""
        ...

    def unavailable(self) -> str | None:
        """Why the detector cannot run here and how to mend that, or None. Must be cheap: no model is loaded."""
        ...

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]: ...


def scored(trace: Trace, value: float, evidence: Sequence[Evidence] = ()) -> Score:
    """A finite value in the detector's own units."""
    return Score(trace.id, float(value), evidence=tuple(evidence))


def abstained(trace: Trace, reason: str) -> Score:
    """The detector has nothing to go by; that is no verdict."""
    return Score(trace.id, None, reason, "abstained")


def failed(trace: Trace, reason: str) -> Score:
    """The detector should have scored this trace but something went wrong."""
    return Score(trace.id, None, reason, "failed")


def missing(needs: frozenset[str], trace: Trace) -> str | None:
    """The first need that the trace does not meet, as a reason; None when all are met."""
    present = {
        "answer": bool(trace.answer.strip()),
        "question": bool(trace.question),
        "sources": bool(trace.sources),
        "context": bool(trace.context_texts),
        "tokens": bool(trace.tokens),
        "alternatives": len(trace.alternatives) >= 2,
        "schema": trace.schema is not None,
    }
    words = {"answer": "empty answer", "alternatives": "fewer than two alternatives"}
    for need in sorted(needs):
        if not present[need]:
            return words.get(need, f"no {need}")
    return None

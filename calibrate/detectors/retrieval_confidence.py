"""Retrieval confidence: how sure the retriever was of the best source it found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.detectors.base import abstained, failed, scored
from calibrate.detectors.shared.scoring import limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace

ATTRIBUTE = "retriever"  # the trace attribute that names who gave the scores


@dataclass(frozen=True)
class RetrievalConfidence:
    """Takes the best score that the retriever gave to any source of the trace. A low value means the retriever found
    nothing that fits the question, so that the answer had little to rest on.

    Needs sources with retrieval scores, higher meaning better. Value: the highest of them, in the retriever's own
    units, which are comparable within one retriever only: where the attribute `retriever` names it, say which counts.
    """

    name: ClassVar[str] = "retrieval_confidence"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Retrieval confidence"
    unit: ClassVar[str] = "best retrieval score of the sources, in the retriever's own units"
    needs: ClassVar[frozenset[str]] = frozenset({"retrieved"})
    also_needs: ClassVar[frozenset[str]] = frozenset({"retrieval_scores"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    usual_threshold: ClassVar[float] = 0.7

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` takes the highest score whichever retriever gave it, and 0 where there is none, so that "
            "what was not logged reads as bad retrieval. Here to compare."
        },
    )
    retriever: str = field(
        default="",
        metadata={
            "help": "The retriever whose scores count, as the trace attribute “retriever” names it; traces of others "
            "abstain. Empty: only traces that name none, as where there is a single one."
        },
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._score)

    def _score(self, trace: Trace) -> Score:
        for source in trace.sources:
            value = source.retrieval_score
            if value is not None and not math.isfinite(value):
                return failed(trace, f"source [{source.number}] has the retrieval score {value}; log a finite number")
        return self._plain(trace) if self.variant == "plain" else self._default(trace)

    def _default(self, trace: Trace) -> Score:
        named = str(trace.attributes.get(ATTRIBUTE) or "")
        if named != self.retriever:
            return abstained(trace, self._explain_other_retriever(named))
        rated = [(source, source.retrieval_score) for source in trace.sources if source.retrieval_score is not None]
        if not rated:
            return abstained(trace, "no source has a retrieval score")
        rated.sort(key=lambda pair: -pair[1])
        texts = ["the best source", *["another source"] * (len(rated) - 1)]
        evidence = [
            Evidence(text, value, source=str(source.number)) for text, (source, value) in zip(texts, rated, strict=True)
        ]
        return scored(trace, rated[0][1], limit_evidence(evidence))

    def _explain_other_retriever(self, named: str) -> str:
        if not named:
            return f"the trace names no retriever in its attribute “{ATTRIBUTE}”, {self.retriever!r} is wanted"
        remedy = f"{self.retriever!r} is wanted" if self.retriever else f"set the parameter retriever to {named!r}"
        return f"scored by the retriever {named!r}, whose scores compare with no other's; {remedy}"

    def _plain(self, trace: Trace) -> Score:
        return scored(trace, max(source.retrieval_score or 0.0 for source in trace.sources))

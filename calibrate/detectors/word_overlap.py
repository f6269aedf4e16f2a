"""Word overlap: the share of the answer's words that the context has too; the baseline others must beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.text.lexical import abbreviate_list, without_citations
from calibrate.backends.text.segments import sentences, words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.scoring import by_number, limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace


@dataclass(frozen=True)
class WordOverlap:
    """Measures how many of the answer's distinct words, “the” and “of” included, also appear in the sources. A low
    share means the answer is worded unlike the sources; a detector that ranks no better than this one adds nothing.

    Needs an answer and sources (or a context). Value: |A ∩ B| / |A|, A the answer's distinct words without citation
    marks, B the context's. `plain` divides by min(|A|, |B|), the overlap coefficient (Szymkiewicz and Simpson).
    """

    name: ClassVar[str] = "word_overlap"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Word overlap"
    unit: ClassVar[str] = "share of the answer's words found in the context"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` splits at blanks and divides by the smaller of the two sets: an answer that has more "
            "words than the context is measured by how much of the context it repeats. Here to compare."
        },
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        answer_words = words(without_citations(trace.answer, by_number(trace.sources)))
        answer = set(answer_words.tokens)
        context = set().union(*(words(text).tokens for text in trace.context_texts))
        if reason := _explain_nothing(answer, context):
            return abstained(trace, reason)
        evidence = []
        for part in sentences(trace.answer):
            distinct = dict.fromkeys(answer_words.between(*part))
            absent = [word for word in distinct if word not in context]
            if absent:
                share = 1 - len(absent) / len(distinct)
                present = len(distinct) - len(absent)
                text = f"{present} of {len(distinct)} words are in the sources; not: {abbreviate_list(absent)}"
                evidence.append(Evidence(text, share, part.start, part.end))
        if not evidence:
            evidence.append(Evidence(f"all {len(answer)} words are in the sources", 1.0))
        value = len(answer & context) / len(answer)
        return scored(trace, value, limit_evidence(sorted(evidence, key=lambda item: item.value or 0.0)))

    def _plain(self, trace: Trace) -> Score:
        """The common recipe: words are what stands between blanks, and the smaller set divides."""
        answer = set(trace.answer.lower().split())
        context = set("\n".join(trace.context_texts).lower().split())
        if reason := _explain_nothing(answer, context):
            return abstained(trace, reason)
        return scored(trace, len(answer & context) / min(len(answer), len(context)))


def _explain_nothing(answer: set[str], context: set[str]) -> str | None:
    """Say why there is nothing to compare, or None."""
    if not answer:
        return "no words in the answer"
    return None if context else "no words in the context"

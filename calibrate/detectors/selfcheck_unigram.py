"""SelfCheckGPT's unigram score: words of the answer that the alternatives hardly use."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.memo import Memo
from calibrate.backends.text.lexical import token_places, without_citations
from calibrate.backends.text.segments import sentences, words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.scoring import by_number, claiming_or_all, limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace

# The same alternatives come with every sentence of an answer: each text is counted once.
_counts = Memo(lambda text: Counter(words(text).tokens), characters=1_000_000)


@dataclass(frozen=True)
class SelfCheckUnigram:
    """Measures how surprising the answer's words are to a word-frequency model of the answer and its alternatives. A
    high value means the answer says something in words that the model does not repeat when asked again.

    Needs an answer and at least two alternatives. Value: maximum (or mean) over the answer's words of −ln p(word),
    p(word) its share of all words of answer and alternatives, unsmoothed (Manakul et al. 2023, SelfCheckGPT, n = 1).
    It cannot exceed the logarithm of that number of words: compare only traces with equally many alternatives.
    """

    name: ClassVar[str] = "selfcheck_unigram"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "SelfCheck unigram"
    unit: ClassVar[str] = "−ln of the least likely word's share among answer and alternatives, in nats"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "alternatives"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    usual_threshold: ClassVar[float] = 7.0

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` takes what stands between blanks for words, as short scripts do: “months.” is not "
            "“months”, and Chinese has no words at all. Here to compare."
        },
    )
    statistic: Literal["max", "mean", "mean_of_max"] = field(
        default="max",
        metadata={
            "help": "The least likely word decides (max), the average over words (mean), or the average over sentences "
            "of each one's least likely word (mean_of_max), for answers of many sentences."
        },
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        numbers = by_number(trace.sources)
        answer = words(without_citations(trace.answer, numbers))
        # The numbers of a list are in no sentence and do not count as words.
        spans = [span for part in claiming_or_all(trace) if (span := token_places(answer, part))]
        spans = spans or [range(len(answer.tokens))]
        others = [_counts(without_citations(text, numbers)) for text in trace.alternatives]
        parts = [answer.tokens[span.start : span.stop] for span in spans]
        if reason := _explain_nothing(parts, others):
            return abstained(trace, reason)
        surprise = _surprises(parts, others)
        evidence = []
        for span in spans:
            place = max(span, key=lambda i: surprise[answer.tokens[i]])
            word = answer.tokens[place]
            having = sum(word in counts for counts in others)
            text = f"“{word}” is in {having} of {len(others)} alternatives"
            evidence.append(Evidence(text, surprise[word], answer.starts[place], answer.ends[place]))
        return scored(
            trace, self._value(parts, surprise), limit_evidence(sorted(evidence, key=lambda item: -(item.value or 0.0)))
        )

    def _plain(self, trace: Trace) -> Score:
        """The common recipe: `text.lower().split()`."""
        parts = [trace.answer[part.start : part.end].lower().split() for part in sentences(trace.answer)]
        parts = parts or [trace.answer.lower().split()]
        others = [Counter(text.lower().split()) for text in trace.alternatives]
        if reason := _explain_nothing(parts, others):
            return abstained(trace, reason)
        return scored(trace, self._value(parts, _surprises(parts, others)))

    def _value(self, parts: Sequence[Sequence[str]], surprise: Mapping[str, float]) -> float:
        """Compute the statistic over the answer's words, grouped by sentence."""
        if self.statistic == "mean_of_max":
            return sum(max(surprise[word] for word in part) for part in parts) / len(parts)
        if self.statistic == "mean":
            return sum(surprise[word] for part in parts for word in part) / sum(map(len, parts))
        return max(surprise.values())


def _explain_nothing(parts: Sequence[Sequence[str]], others: Sequence[Counter[str]]) -> str | None:
    """Say why there is nothing to compare, or None."""
    if not any(parts):
        return "no words in the answer"
    return None if sum(map(bool, others)) >= 2 else "fewer than two alternatives with words"


def _surprises(parts: Sequence[Sequence[str]], others: Sequence[Counter[str]]) -> dict[str, float]:
    """Compute −ln of each answer word's share of all words, the answer's included, so that no share is 0."""
    own = Counter(word for part in parts for word in part)
    total = own.total() + sum(counts.total() for counts in others)
    return {word: math.log(total / (count + sum(counts[word] for counts in others))) for word, count in own.items()}

"""ROUGE-L per sentence: how much of each answer sentence runs, in order, through some passage of the context."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from calibrate.backends.text.lexical import (
    ABSENT,
    analyse,
    analyse_answer,
    assign_letters,
    longest_common_subsequence,
    longest_common_with_any,
    spell,
)
from calibrate.backends.text.segments import Part
from calibrate.backends.text.wordlists import stop_words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.scoring import (
    AGGREGATE_HELP,
    Aggregate,
    aggregate,
    by_number,
    claiming,
    contexts,
    explain_no_claims,
    limit_evidence,
    score_each,
)
from calibrate.types import Evidence, FlagWhen, Score, Trace


@dataclass(frozen=True)
class RougeL:
    """Measures, for each sentence of the answer, how much of it appears in the same order in the best passage of the
    sources. A low value means that the worst sentences are not worded after any passage.

    Needs an answer and sources (or a context). Value per sentence: longest common subsequence with a passage divided by
    the sentence's length, both in words; the precision of ROUGE-L (Lin 2004), which a long context cannot depress. The
    mean of the two lowest counts.
    """

    name: ClassVar[str] = "rouge_l"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "ROUGE-L"
    unit: ClassVar[str] = "share of the two worst sentences' words found in order in one passage of the context"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.3

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is ROUGE-L F1 of the whole answer against the whole context with ASCII words: low for "
            "every long context, 0 for every other script. Here to compare."
        },
    )
    aggregate: Aggregate = field(default="lowest_two", metadata={"help": AGGREGATE_HELP})
    stop_words: bool = field(
        default=False, metadata={"help": "Count words such as “the” and “of” too; they match everywhere."}
    )
    sentences_per_window: int = field(
        default=3, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 20}
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        if importlib.util.find_spec("rapidfuzz") is None:
            return "the package rapidfuzz is missing; install it with `pip install touchstone[lexical]`"
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        answer = analyse_answer(trace.answer, *by_number(trace.sources))
        dropped = frozenset() if self.stop_words else stop_words(answer.tokens)
        # One character per word. Words that the answer lacks cannot be in common and are left out of the passages.
        letters = assign_letters(token for token in answer.tokens if token not in dropped)
        index = _Index(trace, letters, self.sentences_per_window)
        evidence = []
        for part, places in answer.within(claiming(trace)):
            spelling = spell(answer.tokens[places.start : places.stop], letters)
            if spelling:
                common, passage = index.best(spelling)
                evidence.append(_remark(part, common, len(spelling), passage))
        if not evidence:
            return abstained(trace, explain_no_claims(trace))
        values = [item.value for item in evidence if item.value is not None]
        value = aggregate(values, self.aggregate)
        return scored(trace, value, limit_evidence(sorted(evidence, key=lambda item: item.value or 0.0)))

    def _plain(self, trace: Trace) -> Score:
        return scored(trace, rouge_l_f1("\n".join(trace.context_texts), trace.answer))


class _Passage(NamedTuple):
    source: str | None
    part: Part


class _Index:
    """The passages of a trace's context, spelt in `letters`, to search for the longest common subsequence."""

    def __init__(self, trace: Trace, letters: Mapping[str, str], size: int) -> None:
        self._contexts = [(context.number, analyse(context.text)) for context in contexts(trace)]
        self._written: list[str] = []
        self._windows: list[tuple[int, int, int]] = []  # the number of the context, the first sentence and the last
        for number, (_, analysis) in enumerate(self._contexts):
            spelling = spell(analysis.tokens, letters, ABSENT)
            last = min(size, len(analysis.places)) - 1
            ends = zip(analysis.places, analysis.places[last:], strict=False) if analysis.places else ()
            self._written += [spelling[first.start : end.stop].replace(ABSENT, "") for first, end in ends]
            self._windows += [(number, first, first + last) for first in range(len(analysis.places) - last)]
        self._memo: dict[str, tuple[int, _Passage | None]] = {}

    def best(self, spelling: str) -> tuple[int, _Passage | None]:
        """Find the length of the longest common subsequence, and the first passage that has it."""
        if spelling not in self._memo:
            common, place = longest_common_with_any(spelling, self._written)
            self._memo[spelling] = common, self._passage(place) if common else None
        return self._memo[spelling]

    def _passage(self, place: int) -> _Passage:
        number, first, last = self._windows[place]
        source, analysis = self._contexts[number]
        return _Passage(source, Part(analysis.sentences[first].start, analysis.sentences[last].end))


def _remark(part: Part, common: int, n: int, passage: _Passage | None) -> Evidence:
    text = f"{common} of {n} words run in this order through the best passage"
    source, window = (passage.source, (passage.part.start, passage.part.end)) if passage else (None, None)
    return Evidence(text, common / n, part.start, part.end, source, window)


def rouge_l_f1(reference: str, prediction: str) -> float:
    """Compute ROUGE-L F1 as the `rouge_score` package defines it, without stemming; 0 if either has no ASCII word."""
    ids: dict[str, int] = {}
    reference_ids, prediction_ids = (
        [ids.setdefault(word, len(ids)) for word in re.findall(r"[a-z0-9]+", text.lower())]
        for text in (reference, prediction)
    )
    if not reference_ids or not prediction_ids:
        return 0.0
    common = longest_common_subsequence(reference_ids, prediction_ids)
    precision, recall = common / len(prediction_ids), common / len(reference_ids)
    return 2 * precision * recall / (precision + recall) if common else 0.0

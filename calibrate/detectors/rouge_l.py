"""ROUGE-L per sentence: how much of each answer sentence runs, in order, through some passage of the context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.citations import citations
from calibrate.backends.lexical import longest_common_subsequence, masked
from calibrate.backends.text import Part, sentences, windows, words
from calibrate.backends.wordlists import stop_words
from calibrate.detectors._scoring import by_number, contexts, each, readable
from calibrate.detectors.base import abstained, scored
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RougeL:
    """Measures, for each sentence of the answer, how much of it appears in the same order in the best passage of the
    sources. A low value means at least one sentence is not worded after any passage.

    Needs an answer and sources (or a context). Value per sentence: longest common subsequence with a passage divided by
    the sentence's length, both in words; the precision of ROUGE-L (Lin 2004), which a long context cannot depress.
    """

    name: ClassVar[str] = "rouge_l"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "ROUGE-L"
    unit: ClassVar[str] = "share of a sentence's words found in order in one passage of the context"
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
    aggregate: Literal["min", "mean"] = field(
        default="min", metadata={"help": "The worst sentence decides (min), or the average over sentences (mean)."}
    )
    stop_words: bool = field(
        default=False, metadata={"help": "Count words such as “the” and “of” too; they match everywhere."}
    )
    sentences_per_window: int = field(
        default=3, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 20}
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        answer = masked(trace.answer, citations(trace.answer, known=by_number(trace.sources)))
        found = words(answer)
        dropped = frozenset() if self.stop_words else stop_words(found.tokens)
        ids: dict[str, int] = {}
        index = self._index(trace, dropped, ids)
        evidence = []
        for part in sentences(trace.answer):
            tokens = [ids.setdefault(token, len(ids)) for token in found.between(*part) if token not in dropped]
            if tokens:
                common, passage = index.best(tokens)
                evidence.append(_remark(part, common, len(tokens), passage))
        if not evidence:
            return abstained(trace, "no content words in the answer")
        values = [one.value for one in evidence if one.value is not None]
        value = min(values) if self.aggregate == "min" else sum(values) / len(values)
        return scored(trace, value, readable(sorted(evidence, key=lambda one: one.value or 0.0)))

    def _index(self, trace: Trace, dropped: frozenset[str], ids: dict[str, int]) -> _Index:
        passages: list[_Passage] = []
        for context in contexts(trace):
            found = words(context.text)
            for part in windows(context.text, sentences_per_window=self.sentences_per_window):
                tokens = [ids.setdefault(token, len(ids)) for token in found.between(*part) if token not in dropped]
                if tokens:
                    passages.append(_Passage(context.number, part, tokens))
        return _Index(passages)

    def _plain(self, trace: Trace) -> Score:
        return scored(trace, rouge_l_f1("\n".join(trace.context_texts), trace.answer))


@dataclass(frozen=True, slots=True)
class _Passage:
    source: str | None
    part: Part
    tokens: list[int]


class _Index:
    """Finds the passage with the longest common subsequence without trying them all.

    A common subsequence is no longer than the number of the sentence's words that the passage has at all; passages
    are tried in order of that bound until it cannot beat the best. Exact.
    """

    def __init__(self, passages: list[_Passage]) -> None:
        import numpy as np

        self._passages = passages
        places: dict[int, list[int]] = {}
        for number, passage in enumerate(passages):
            for token in set(passage.tokens):
                places.setdefault(token, []).append(number)
        self._places: dict[int, NDArray[np.int64]] = {token: np.array(held) for token, held in places.items()}

    def best(self, tokens: list[int]) -> tuple[int, _Passage | None]:
        """Length of the longest common subsequence, and a passage that has it."""
        import numpy as np

        postings = [self._places[token] for token in tokens if token in self._places]
        if not postings:
            return 0, None
        bounds = np.bincount(np.concatenate(postings), minlength=len(self._passages))
        best, passage = 0, None
        for place in np.argsort(-bounds, kind="stable"):
            if bounds[place] <= best:
                break
            common = longest_common_subsequence(tokens, self._passages[place].tokens)
            if common > best:
                best, passage = common, self._passages[place]
        return best, passage


def _remark(part: Part, common: int, n: int, passage: _Passage | None) -> Evidence:
    text = f"{common} of {n} words run in this order through the best passage"
    source, window = (passage.source, (passage.part.start, passage.part.end)) if passage else (None, None)
    return Evidence(text, common / n, part.start, part.end, source, window)


def rouge_l_f1(reference: str, prediction: str) -> float:
    """ROUGE-L F1 as the `rouge_score` package defines it, without stemming; 0 when either has no ASCII word."""
    ids: dict[str, int] = {}
    one, other = (
        [ids.setdefault(word, len(ids)) for word in re.findall(r"[a-z0-9]+", text.lower())]
        for text in (reference, prediction)
    )
    if not one or not other:
        return 0.0
    common = longest_common_subsequence(one, other)
    precision, recall = common / len(other), common / len(one)
    return 2 * precision * recall / (precision + recall) if common else 0.0

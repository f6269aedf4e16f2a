"""Citation grounding: does the source that a sentence cites contain what the sentence says?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.embedding import PACKAGED, Shortlist, claims, cut, embedder, shortlist
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.embedding import Asking, EmbeddingDetector, score_in_rounds
from calibrate.detectors.shared.lowest_similarity import Pair, Search
from calibrate.detectors.shared.scoring import by_number, claiming, limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

PLAIN_PAIRS = 1000  # of a megabyte of citations, to end in seconds


@dataclass(frozen=True)
class CitationGrounding(EmbeddingDetector):
    """Measures how close in meaning every cited sentence is to the source it cites. A low value means at least one
    citation points to a source that does not speak of what the sentence says.

    Needs an answer with citations, sources and the embedding model. Value: the lowest, over (sentence, citation), of
    the highest cosine with any window of the cited source. Citations of sources that were not given are left to
    `citation_validity`.
    """

    name: ClassVar[str] = "citation_grounding"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Citation grounding"
    unit: ClassVar[str] = "cosine of the least grounded cited sentence with its source"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "sources"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    usual_threshold: ClassVar[float] = 0.55

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` splits at every full stop, so that in “A. [1] B. [2]” the [1] goes to B, embeds each "
            "source whole (cut off at 256 word pieces) and gives 0 for a source that is missing. Here to compare."
        },
    )
    reading: Literal["each", "union"] = field(
        default="each",
        metadata={
            "help": "`each`: every source a sentence cites must speak of it. `union`: one of them is enough, for "
            "answers that put all their sources after one sentence."
        },
    )
    sentences_per_window: int = field(
        default=2, metadata={"help": "Sentences of a source in one passage.", "low": 1, "high": 10}
    )
    evidence: Literal["worst", "all"] = field(
        default="worst",
        metadata={
            "help": "The score is the same. `worst` compares a citation only until it is clear that it is not the "
            "worst one, which halves the time; `all` finds the nearest passage for every citation."
        },
    )
    model: str = field(
        default=PACKAGED,
        metadata={
            "help": "Embedding model: the packaged one, a directory, or a Hugging Face id already downloaded. A "
            "threshold such as 0.55 belongs to one model."
        },
    )

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        ask = self._ask_plain if self.variant == "plain" else self._ask
        return score_in_rounds(self.needs, traces, ask, embedder(self.model))

    def _ask(self, trace: Trace) -> Asking:
        model = embedder(self.model)
        sources = by_number(trace.sources)
        extracted = claims(trace.answer, model, sources=sources, among=claiming(trace), cited_only=True)
        if not extracted:
            return abstained(trace, "uncited: no claim of the answer cites a source")
        cited = {n: sources[n] for n in dict.fromkeys(n for claim in extracted for n in claim.numbers) if n in sources}
        if not cited:
            return abstained(trace, "every citation points to a source that was not given")
        passages = cut([item.text for item in cited.values()], model, sentences_per_window=self.sentences_per_window)
        listed = shortlist([claim for claim in extracted if set(claim.numbers) & cited.keys()], passages)
        pairs = self._pairs(listed, list(cited))
        if not pairs:
            return abstained(trace, "the cited sources have no text")
        search = Search(listed, pairs, list(cited.values()))
        search.learn((yield search.first()))
        while texts := search.next(everything=self.evidence == "all"):
            search.learn((yield texts))
        evidence = sorted(search.all_evidence(), key=lambda item: item.value or 0.0)
        remark = [Evidence(listed.remark)] if listed.remark else []
        return scored(trace, search.lowest(), limit_evidence(remark + evidence))

    def _pairs(self, listed: Shortlist, numbers: list[str]) -> list[Pair]:
        """Pair each claim with the windows of a source it cites, or with `union` of all the sources it cites."""
        windows: dict[str, list[int]] = {number: [] for number in numbers}
        for at, window in enumerate(listed.windows):
            windows[numbers[window.place]].append(at)
        pairs = []
        for row, claim in enumerate(listed.claims):
            groups = [list(windows[number]) for number in claim.numbers if windows.get(number)]
            if self.reading == "union":
                groups = [[at for group in groups for at in group]] if groups else []
            pairs += [Pair(row, group) for group in groups]
        return pairs

    def _ask_plain(self, trace: Trace) -> Asking:
        """The common recipe, except its integer keys, which never match: with them every score would be 0."""
        sources = by_number(trace.sources)
        pairs = [
            (sentence, str(int(number)))
            for sentence in re.split(r"(?<=[.!?])\s+", trace.answer)
            for number in re.findall(r"\[(\d{1,80})\]", sentence)
        ][:PLAIN_PAIRS]
        if not pairs:
            return abstained(trace, "uncited: no sentence of the answer cites a source")
        vectors = yield [
            text
            for sentence_text, number in pairs
            if number in sources
            for text in (sentence_text, sources[number].text)
        ]
        cosines = [
            float(sentence_vector @ source_vector)
            for sentence_vector, source_vector in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        return scored(trace, min(cosines) if len(cosines) == len(pairs) else min([*cosines, 0.0]))

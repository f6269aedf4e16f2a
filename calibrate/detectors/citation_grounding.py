"""Citation grounding: does the source that a sentence cites contain what the sentence says?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedder import PACKAGED, embedder
from calibrate.backends.passages import Claim, Shortlist, claims, cut, shortlist
from calibrate.detectors._embedding import Question, together
from calibrate.detectors._scoring import Context, by_number, readable
from calibrate.detectors.base import abstained, scored
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class CitationGrounding:
    """Measures how close in meaning every cited sentence is to the source it cites. A low value means at least one
    citation points to a source that does not speak of what the sentence says.

    Needs an answer with citations, sources and the embedding model. Value: the lowest, over (sentence, citation), of
    the highest cosine with any window of the cited source. Citations of sources that were not given are left to
    `citation_validity`.
    """

    name: ClassVar[str] = "citation_grounding"
    version: ClassVar[str] = "1"
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
    model: str = field(
        default=PACKAGED,
        metadata={
            "help": "Embedding model: the packaged one, a directory, or a Hugging Face id already downloaded. A "
            "threshold such as 0.55 belongs to one model."
        },
    )

    def revision(self) -> str:
        return embedder(self.model).revision()

    def unavailable(self) -> str | None:
        return embedder(self.model).unavailable()

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        prepare = self._prepare_plain if self.variant == "plain" else self._prepare
        return together(self.needs, traces, prepare, embedder(self.model))

    def _prepare(self, trace: Trace) -> Question | Score:
        model = embedder(self.model)
        given = by_number(trace.sources)
        found = claims(trace.answer, model, known=given, cited_only=True)
        if not found:
            return abstained(trace, "uncited: no sentence of the answer cites a source")
        numbers = [n for n in dict.fromkeys(n for claim in found for n in claim.numbers) if n in given]
        if not numbers:
            return abstained(trace, "every citation points to a source that was not given")
        cited = [given[number] for number in numbers]
        passages = cut([one.text for one in cited], model, sentences_per_window=self.sentences_per_window)
        listed = shortlist([claim for claim in found if set(claim.numbers) & given.keys()], passages)
        if not listed.windows:
            return abstained(trace, "the cited sources have no text")
        texts = [claim.text for claim in listed.claims] + [window.text for window in listed.windows]
        return Question(texts, partial(self._judge, trace, dict(zip(numbers, cited, strict=True)), listed))

    def _judge(self, trace: Trace, cited: dict[str, Context], listed: Shortlist, vectors: NDArray[np.float32]) -> Score:
        import numpy as np

        said = len(listed.claims)
        cosines = vectors[:said] @ vectors[said:].T
        # The windows of one source lie together: first and last row of each.
        owners = np.array([window.place for window in listed.windows])
        slices = {
            number: (int(np.searchsorted(owners, place)), int(np.searchsorted(owners, place, side="right")))
            for place, number in enumerate(cited)
        }
        evidence = [
            one
            for row, claim in enumerate(listed.claims)
            for one in self._compared(claim, cosines[row], slices, cited, listed)
        ]
        if not evidence:
            return abstained(trace, "the cited sources have no text")
        evidence.sort(key=lambda one: one.value or 0.0)
        remark = [Evidence(listed.remark)] if listed.remark else []
        return scored(trace, evidence[0].value or 0.0, readable(remark + evidence))

    def _compared(
        self,
        claim: Claim,
        cosines: NDArray[np.float32],
        slices: dict[str, tuple[int, int]],
        cited: dict[str, Context],
        listed: Shortlist,
    ) -> list[Evidence]:
        """One piece of evidence for each source the claim cites, or for the best of them in the union reading."""
        found = []
        for number in claim.numbers:
            first, last = slices.get(number, (0, 0))
            if first == last:
                continue
            place = first + int(cosines[first:last].argmax())
            value, window = float(cosines[place]), listed.windows[place]
            text = f"cosine {value:.2f} with the nearest passage of [{number}]"
            where = (window.start, window.end)
            found.append(Evidence(text, value, claim.start, claim.end, cited[number].number, where))
        if self.reading == "union" and found:
            return [max(found, key=lambda one: one.value or 0.0)]
        return found

    def _prepare_plain(self, trace: Trace) -> Question | Score:
        """The recipe as found, but for its integer keys that never match: with them every score would be 0."""
        given = by_number(trace.sources)
        pairs = [
            (sentence, str(int(number)))
            for sentence in re.split(r"(?<=[.!?])\s+", trace.answer)
            for number in re.findall(r"\[(\d{1,80})\]", sentence)
        ][:PLAIN_PAIRS]
        if not pairs:
            return abstained(trace, "uncited: no sentence of the answer cites a source")
        texts = [text for sentence, number in pairs if number in given for text in (sentence, given[number].text)]

        def judge(vectors: NDArray[np.float32]) -> Score:
            cosines = [float(one @ other) for one, other in zip(vectors[::2], vectors[1::2], strict=True)]
            if len(cosines) < len(pairs):
                cosines.append(0.0)
            return scored(trace, min(cosines))

        return Question(texts, judge)


PLAIN_PAIRS = 1000  # of a megabyte of citations, to end in seconds

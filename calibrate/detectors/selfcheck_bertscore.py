"""SelfCheckGPT with BERTScore: would the model say each sentence again, if asked again?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedding import claims, embedder
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.embedding import Asking, EmbeddingDetector, score_in_rounds, split_by_size
from calibrate.detectors.shared.scoring import by_number, claiming_or_all, limit_evidence
from calibrate.detectors.shared.token_matching import Texts
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHARACTERS = 200_000  # of one trace's alternatives; what exceeds it would take minutes

PORTION = 200_000  # characters at once: 150 MB of token vectors


@dataclass(frozen=True)
class SelfCheckBertScore(EmbeddingDetector):
    """Measures how far each sentence of the answer is from what the model said when it was asked again. A high value
    means the alternatives do not repeat it: the model is guessing.

    Needs an answer, at least two alternatives and the embedding model. Value: over the answer's sentences, the mean (or
    the highest) of 1 minus the mean, over alternatives, of the highest BERTScore F1 with one of the alternative's
    sentences (Manakul et al. 2023), not rescaled.
    """

    name: ClassVar[str] = "selfcheck_bertscore"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "SelfCheck BERTScore"
    unit: ClassVar[str] = "1 − BERTScore F1 with the nearest sentences of the alternatives"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "alternatives"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)
    usual_threshold: ClassVar[float] = 0.5
    batch: ClassVar[int] = 32

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` compares the first sentence with each alternative's first, the second with its second: an "
            "alternative that says the same in another order counts as a contradiction. Here to compare."
        },
    )
    aggregate: Literal["mean", "max"] = field(
        default="mean", metadata={"help": "The average over sentences (mean), or the worst sentence decides (max)."}
    )

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        for portion in split_by_size(traces, PORTION):
            yield from score_in_rounds(self.needs, portion, self._ask, embedder(self.model), tokens=True)

    def _ask(self, trace: Trace) -> Asking:
        model = embedder(self.model)
        numbers = by_number(trace.sources)
        extracted = claims(trace.answer, model, sources=numbers, among=claiming_or_all(trace))
        pieces = [
            (place, claim.text)
            for place, text in enumerate(trace.alternatives)
            for claim in claims(text, model, sources=numbers)
        ]
        while sum(len(text) for _, text in pieces) > CHARACTERS:
            pieces = [item for item in pieces if item[0] < pieces[-1][0]]
        if not extracted:
            return abstained(trace, "no sentence in the answer")
        compared = list(dict.fromkeys(place for place, _ in pieces))
        if len(compared) < 2:
            return abstained(trace, "fewer than two alternatives of a length that can be compared")
        tokens = yield [claim.text for claim in extracted] + [text for _, text in pieces]
        texts = Texts(tokens[len(extracted) :])
        groups = [[i for i, (at, _) in enumerate(pieces) if at == place] for place in compared]
        evidence = []
        for number, (claim, vectors) in enumerate(zip(extracted, tokens, strict=False)):
            value = 1.0 - self._mean_of_best(texts.f1(vectors), groups, number)
            text = f"{value:.2f} from the nearest sentences of {len(compared)} alternatives"
            evidence.append(Evidence(text, value, claim.start, claim.end))
        values = [item.value or 0.0 for item in evidence]
        shown = limit_evidence(sorted(evidence, key=lambda item: -(item.value or 0.0)))
        return scored(trace, max(values) if self.aggregate == "max" else sum(values) / len(values), shown)

    def _mean_of_best(self, f1: NDArray[np.float32], groups: Sequence[Sequence[int]], number: int) -> float:
        """Average, over the alternatives, the best F1 of each."""
        if self.variant == "plain":
            return sum(float(f1[group[min(number, len(group) - 1)]]) for group in groups) / len(groups)
        return sum(float(f1[list(group)].max()) for group in groups) / len(groups)

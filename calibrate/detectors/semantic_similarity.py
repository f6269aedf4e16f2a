"""Semantic similarity: how near in meaning is each sentence of the answer to the nearest passage of the context?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedding import Shortlist, claims, cut, embedder, shortlist
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.embedding import Asking, EmbeddingDetector, score_in_rounds
from calibrate.detectors.shared.scoring import (
    AGGREGATE_HELP,
    Aggregate,
    Context,
    aggregate,
    by_number,
    claiming,
    contexts,
    explain_no_claims,
    limit_evidence,
)
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SemanticSimilarity(EmbeddingDetector):
    """Measures how close in meaning each sentence of the answer is to the closest passage of the sources. A low value
    means that the worst sentences talk about something the sources do not.

    Needs an answer, sources (or a context) and the embedding model. Value per sentence: the highest cosine with any
    window of the context (Reimers and Gurevych 2019 for the embeddings). The mean of the two lowest counts.
    """

    name: ClassVar[str] = "semantic_similarity"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Semantic similarity"
    unit: ClassVar[str] = "cosine of the two least supported sentences with their nearest passages"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    usual_threshold: ClassVar[float] = 0.6

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` embeds the whole answer and the whole context once each: one wrong sentence hides among "
            "right ones, and all beyond the model's 256 word pieces is cut off unseen. Here to compare."
        },
    )
    aggregate: Aggregate = field(default="lowest_two", metadata={"help": AGGREGATE_HELP})
    sentences_per_window: int = field(
        default=2, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 10}
    )

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        ask = self._ask_plain if self.variant == "plain" else self._ask
        return score_in_rounds(self.needs, traces, ask, embedder(self.model))

    def _ask(self, trace: Trace) -> Asking:
        model = embedder(self.model)
        sources = contexts(trace)
        extracted = claims(trace.answer, model, sources=by_number(trace.sources), among=claiming(trace))
        passages = cut([item.text for item in sources], model, sentences_per_window=self.sentences_per_window)
        if not extracted:
            return abstained(trace, explain_no_claims(trace))
        if not passages:
            return abstained(trace, "no sentence in the context")
        listed = shortlist(extracted, passages)
        vectors = yield [claim.text for claim in listed.claims] + [window.text for window in listed.windows]
        n_claims = len(listed.claims)
        return self._judge(trace, sources, listed, vectors[:n_claims] @ vectors[n_claims:].T)

    def _judge(
        self, trace: Trace, sources: Sequence[Context], listed: Shortlist, cosines: NDArray[np.float32]
    ) -> Score:
        nearest, highest = cosines.argmax(axis=1), cosines.max(axis=1)
        evidence = []
        for claim, place, value in zip(listed.claims, nearest, highest, strict=True):
            window = listed.windows[place]
            number = sources[window.place].number
            text = f"cosine {value:.2f} with the nearest passage"
            evidence.append(Evidence(text, float(value), claim.start, claim.end, number, (window.start, window.end)))
        value = aggregate(highest.tolist(), self.aggregate)
        remark = [Evidence(listed.remark)] if listed.remark else []
        return scored(trace, value, limit_evidence(remark + sorted(evidence, key=lambda item: item.value or 0.0)))

    def _ask_plain(self, trace: Trace) -> Asking:
        answer, context = yield [trace.answer, "\n\n".join(trace.context_texts)]
        return scored(trace, float(answer @ context))

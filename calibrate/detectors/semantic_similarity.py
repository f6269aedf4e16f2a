"""Semantic similarity: how near in meaning is each sentence of the answer to the nearest passage of the context?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedding.embedder import embedder
from calibrate.backends.embedding.passages import Shortlist, claims, cut, shortlist
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.embedding import Asking, EmbeddingDetector, together
from calibrate.detectors.shared.scoring import Context, by_number, contexts, readable
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SemanticSimilarity(EmbeddingDetector):
    """Measures how close in meaning each sentence of the answer is to the closest passage of the sources. A low value
    means at least one sentence talks about something the sources do not.

    Needs an answer, sources (or a context) and the embedding model. Value: the lowest, over sentences, of the highest
    cosine with any window of the context (Reimers and Gurevych 2019 for the embeddings).
    """

    name: ClassVar[str] = "semantic_similarity"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Semantic similarity"
    unit: ClassVar[str] = "cosine of the least supported sentence with its nearest passage"
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
    aggregate: Literal["min", "mean"] = field(
        default="min", metadata={"help": "The worst sentence decides (min), or the average over sentences (mean)."}
    )
    sentences_per_window: int = field(
        default=2, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 10}
    )

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        ask = self._ask_plain if self.variant == "plain" else self._ask
        return together(self.needs, traces, ask, embedder(self.model))

    def _ask(self, trace: Trace) -> Asking:
        model = embedder(self.model)
        given = contexts(trace)
        found = claims(trace.answer, model, known=by_number(trace.sources))
        passages = cut([one.text for one in given], model, sentences_per_window=self.sentences_per_window)
        if not found:
            return abstained(trace, "no sentence in the answer")
        if not passages:
            return abstained(trace, "no sentence in the context")
        listed = shortlist(found, passages)
        vectors = yield [claim.text for claim in listed.claims] + [window.text for window in listed.windows]
        said = len(listed.claims)
        return self._judge(trace, given, listed, vectors[:said] @ vectors[said:].T)

    def _judge(self, trace: Trace, given: Sequence[Context], listed: Shortlist, cosines: NDArray[np.float32]) -> Score:
        nearest, highest = cosines.argmax(axis=1), cosines.max(axis=1)
        evidence = []
        for claim, place, value in zip(listed.claims, nearest, highest, strict=True):
            window = listed.windows[place]
            number = given[window.place].number
            text = f"cosine {value:.2f} with the nearest passage"
            evidence.append(Evidence(text, float(value), claim.start, claim.end, number, (window.start, window.end)))
        value = float(highest.min() if self.aggregate == "min" else highest.mean())
        remark = [Evidence(listed.remark)] if listed.remark else []
        return scored(trace, value, readable(remark + sorted(evidence, key=lambda one: one.value or 0.0)))

    def _ask_plain(self, trace: Trace) -> Asking:
        one, other = yield [trace.answer, "\n\n".join(trace.context_texts)]
        return scored(trace, float(one @ other))

"""Self-consistency: does the model say much the same when it is asked again?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedding import embedder
from calibrate.backends.text.lexical import without_citations
from calibrate.backends.text.segments import Part, sentences
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.embedding import Asking, EmbeddingDetector, score_in_rounds
from calibrate.detectors.shared.nli import Alternative, alternatives, explain_too_few
from calibrate.detectors.shared.scoring import by_number, limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class SelfConsistency(EmbeddingDetector):
    """Measures how close in meaning this answer and other answers drawn for the same question are to each other. A low
    value means the model says something else when asked again.

    Needs an answer, at least two alternatives and the embedding model. Value: the mean cosine over all pairs of the
    answer and its alternatives; the common recipe leaves the answer out (`compare=alternatives`).
    """

    name: ClassVar[str] = "self_consistency"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Self-consistency"
    unit: ClassVar[str] = "mean cosine over pairs of the answer and its alternatives"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "alternatives"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    usual_threshold: ClassVar[float] = 0.65

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` compares the alternatives with each other and never with the logged answer, embeds each "
            "whole (cut off at the model's limit), gives 0 for fewer than two and 1 for identical refusals. Here to "
            "compare."
        },
    )
    compare: Literal["answer", "all", "alternatives"] = field(
        default="all",
        metadata={
            "help": "`all`: every pair of the logged answer and its alternatives. `answer`: the answer with each "
            "alternative. `alternatives`: every pair of alternatives, as published; it says how sure the model is of "
            "the question, not of this answer."
        },
    )

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        if self.variant == "plain":
            return score_in_rounds(frozenset(), traces, self._ask_plain, embedder(self.model))
        return score_in_rounds(self.needs, traces, self._ask, embedder(self.model))

    def _ask(self, trace: Trace) -> Asking:
        others = alternatives(trace)
        if why := explain_too_few(others):
            return abstained(trace, why)
        numbers = by_number(trace.sources)
        texts = (without_citations(text, numbers) for text in (trace.answer, *(item.text for item in others)))
        pieces = [self._pieces(text) for text in texts]
        vectors = yield [piece for group in pieces for piece in group]
        answer, *rest = _pool_pieces(pieces, vectors)
        near = [float(item @ answer) for item in rest]
        if self.compare == "answer":
            value = sum(near) / len(near)
        else:
            value = _pairwise(rest if self.compare == "alternatives" else [answer, *rest])
        declined = sum(item.declines for item in others)
        remarks = [Evidence(f"{declined} of {len(others)} alternatives are refusals")] if declined else []
        return scored(trace, value, limit_evidence(remarks + _evidence(others, near)))

    def _pieces(self, text: str) -> list[str]:
        """Return the text whole if it fits the model, else in pieces that do."""
        model = embedder(self.model)
        parts = model.fit(text, [Part(0, len(text))])
        if len(parts) > 1:  # cut between sentences rather than anywhere
            parts = model.fit(text, sentences(text)) or parts
        return [text[part.start : part.end] for part in parts]

    def _ask_plain(self, trace: Trace) -> Asking:
        """The common recipe: `if len(samples) < 2: return 0.0`, then the mean over pairs."""
        if len(trace.alternatives) < 2:
            return scored(trace, 0.0)
        vectors = yield list(trace.alternatives)
        return scored(trace, _pairwise(list(vectors)))


def _pool_pieces(pieces: Sequence[Sequence[str]], vectors: Vectors) -> list[Vectors]:
    """Compute one unit vector per text: its only piece's, or the mean of its pieces' weighted by their lengths."""
    import numpy as np

    unit_vectors, start = [], 0
    for group in pieces:
        rows = vectors[start : start + len(group)]
        start += len(group)
        mean = np.average(rows, axis=0, weights=[len(piece) for piece in group])
        unit_vectors.append(mean / max(float(np.linalg.norm(mean)), 1e-12))
    return unit_vectors


def _pairwise(vectors: Sequence[Vectors]) -> float:
    """Mean cosine over the pairs of different rows."""
    import numpy as np

    rows = np.stack(vectors).astype(np.float64)
    cosines = rows @ rows.T
    return float(cosines[np.triu_indices(len(rows), 1)].mean().clip(-1, 1))


def _evidence(others: Sequence[Alternative], near: Sequence[float]) -> list[Evidence]:
    order = sorted(range(len(others)), key=lambda at: near[at])
    return [Evidence(f"cosine {near[at]:.2f} with alternative {others[at].number}: {others[at].shown}", near[at])
            for at in order]  # fmt: skip

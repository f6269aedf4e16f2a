"""Match the tokens of a text with those of others by cosine (BERTScore, Zhang et al. 2020).

Token vectors are normalised, shape (tokens, dimensions), with the two framing tokens first and last. As in the
reference, framing tokens may be matched but do not count. There is no rescaling: its baselines belong to one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Texts:
    """The concatenated tokens of several texts, so that one matrix product compares with all of them."""

    def __init__(self, tokens: Sequence[Vectors]) -> None:
        import numpy as np

        self._tokens = np.concatenate(tokens)
        lengths = np.array([len(array) for array in tokens])
        self._starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self._inner = np.maximum(lengths - 2, 1)
        framing = np.concatenate([self._starts, self._starts + lengths - 1])
        self._counts = np.ones(len(self._tokens), dtype=np.float32)
        self._counts[framing] = 0.0

    def precision(self, claim: Vectors) -> Vectors:
        """For each text the mean, over the claim's tokens, of the highest cosine with one of the text's; in [-1, 1]."""
        return self._precision(self._cosines(claim))

    def f1(self, claim: Vectors) -> Vectors:
        """For each text the harmonic mean of that precision and of the recall: the text's tokens met by the claim's."""
        import numpy as np

        cosines = self._cosines(claim)
        precision = self._precision(cosines)
        met = cosines.max(axis=0) * self._counts
        recall = np.add.reduceat(met, self._starts) / self._inner
        total = precision + recall
        score: Vectors = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total != 0)
        return score

    def _cosines(self, claim: Vectors) -> Vectors:
        return claim @ self._tokens.T

    def _precision(self, cosines: Vectors) -> Vectors:
        import numpy as np

        best: Vectors = np.maximum.reduceat(cosines, self._starts, axis=1)
        inner = best[1:-1] if len(best) > 2 else best[:0]
        return inner.mean(axis=0) if len(inner) else np.zeros(best.shape[1], dtype=np.float32)

"""Find the lowest, over pairs of a claim and a source, of the highest cosine with the source's windows.

The result is exact, but not every window is embedded. A pair is dropped as soon as one of its windows beats the lowest
complete pair, because further windows can only raise it. First, each pair compares the window that shares most words
with the claim; then the pair that looks worst is compared in full; then only pairs that could still be lower, a few
windows at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrate.backends.embedding import Shortlist
from calibrate.backends.text.lexical import stem
from calibrate.backends.text.segments import words
from calibrate.backends.text.wordlists import STOP_WORDS
from calibrate.detectors.shared.scoring import Context
from calibrate.types import Evidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(slots=True)
class Pair:
    """A claim (its row) and the windows to compare it with (their positions in the shortlist)."""

    row: int
    windows: list[int]
    best: float = -math.inf
    at: int = -1
    seen: int = 0  # how many of the windows have been compared

    @property
    def complete(self) -> bool:
        return self.seen == len(self.windows)


class Search:
    """The search for one trace, in rounds of texts to embed."""

    def __init__(self, listed: Shortlist, pairs: list[Pair], cited: Sequence[Context]) -> None:
        self._listed, self._pairs, self._cited = listed, pairs, cited
        self._claims: NDArray[np.float32] | None = None
        self._windows: dict[int, NDArray[np.float32]] = {}
        self._requested: list[int] = []
        self._rounds = 0

    def first(self) -> list[str]:
        """The texts of the first round: the claims, and for each pair the window that is probably nearest."""
        stems = {at: _stems(self._listed.windows[at].text) for pair in self._pairs for at in pair.windows}
        spread = Counter(stem for words_of_window in stems.values() for stem in words_of_window)
        claims = [_stems(claim.text) for claim in self._listed.claims]
        for pair in self._pairs:
            rank = {at: _shared_weight(claims[pair.row], stems[at], spread) for at in pair.windows}
            pair.windows.sort(key=lambda at, rank=rank: -rank[at])  # type: ignore[misc]
        return [claim.text for claim in self._listed.claims] + self._request(self._pairs, 1)

    def next(self, *, everything: bool = False) -> list[str]:
        """The windows of the next round; none once the lowest pair is known."""
        self._rounds += 1
        if everything:
            return self._request(self._pairs, None)
        lowest = min((pair.best for pair in self._pairs if pair.complete), default=math.inf)
        open_pairs = [pair for pair in self._pairs if not pair.complete and pair.best < lowest]
        if self._rounds == 1 and open_pairs:
            return self._request([min(open_pairs, key=lambda pair: pair.best)], None)
        # Two more windows, then four: usually one of the first is enough, and there should be few rounds.
        return self._request(open_pairs, 2 ** (self._rounds - 1))

    def learn(self, vectors: NDArray[np.float32]) -> None:
        """Record the vectors of the texts requested last."""
        if self._claims is None:
            self._claims, vectors = vectors[: len(self._listed.claims)], vectors[len(self._listed.claims) :]
        self._windows.update(zip(self._requested, vectors, strict=True))
        for pair in self._pairs:
            if not pair.complete:
                self._compare(pair, self._claims[pair.row])

    def _compare(self, pair: Pair, claim: NDArray[np.float32]) -> None:
        import numpy as np

        compared = [at for at in pair.windows if at in self._windows]
        cosines = np.stack([self._windows[at] for at in compared]) @ claim
        place = int(cosines.argmax())
        pair.best, pair.at, pair.seen = float(cosines[place]), compared[place], len(compared)

    def lowest(self) -> float:
        return min(pair.best for pair in self._pairs)

    def all_evidence(self) -> list[Evidence]:
        """One piece of evidence per pair; for a pair that was dropped early it says "at least"."""
        return [self._evidence(pair) for pair in self._pairs]

    def _evidence(self, pair: Pair) -> Evidence:
        claim, window = self._listed.claims[pair.row], self._listed.windows[pair.at]
        number = self._cited[window.place].number
        measure = "cosine" if pair.complete else "cosine at least"
        passage = "the nearest passage" if pair.complete else "a passage"
        text = f"{measure} {pair.best:.2f} with {passage} of [{number}]"
        return Evidence(text, pair.best, claim.start, claim.end, number, (window.start, window.end))

    def _request(self, pairs: Sequence[Pair], most: int | None) -> list[str]:
        """Request the next windows of these pairs, at most `most` of each."""
        new = [[at for at in pair.windows if at not in self._windows][:most] for pair in pairs]
        self._requested = list(dict.fromkeys(at for places in new for at in places))
        return [self._listed.windows[at].text for at in self._requested]


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(token) for token in words(text).tokens if token not in STOP_WORDS["en"])


def _shared_weight(claim: frozenset[str], window: frozenset[str], spread: Counter[str]) -> float:
    """Weigh the words in common: rare words count more, and long windows less."""
    return sum(1 / spread[token] for token in claim & window) / math.sqrt(len(window) or 1)

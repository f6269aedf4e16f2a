"""A cache of figures per distinct pair of texts, so that a model judges each pair once in a process."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from calibrate.backends.inference.classifier import Pair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

ENTRIES = 100_000  # about 300 bytes each


class PairMemo:
    """Keeps the `width` figures of the pairs used last, up to ENTRIES of them. Safe between threads."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: OrderedDict[bytes, tuple[float, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, pairs: Sequence[Pair], judge: Callable[[list[Pair]], Rows]) -> Rows:
        """Return float32 rows, one per pair, in order; `judge` computes those of distinct pairs that are not kept."""
        import numpy as np

        keys = [_key(pair) for pair in pairs]
        with self._lock:  # another thread waits rather than judge the same pairs
            new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._rows}
            fresh: dict[bytes, tuple[float, ...]] = {}
            if new:
                fresh = dict(zip(new, map(tuple, judge(list(new.values())).tolist()), strict=True))
            rows = [fresh[key] if key in fresh else self._rows[key] for key in keys]
            self._remember(keys, fresh)
        return np.array(rows, dtype=np.float32).reshape(-1, self._width)

    def _remember(self, keys: Sequence[bytes], fresh: dict[bytes, tuple[float, ...]]) -> None:
        self._rows.update(fresh)
        for key in keys:
            self._rows.move_to_end(key)
        while len(self._rows) > ENTRIES:
            self._rows.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()


def _key(pair: Pair) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    first, second = (text.encode("utf-8", "surrogatepass") for text in pair)
    digest.update(len(first).to_bytes(8, "big") + first + second)
    return digest.digest()

"""A cache of results per distinct text (or texts), bounded by size and number: a text may be a word or a megabyte."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


ENTRIES = 16_384
"""Most results of one cache: about 1 kB each, however short the text. A run passes 256 traces at once: 64 each."""


class Memo(Generic[Result]):
    """Caches `compute(text, …)` for the texts used last: up to `characters` of text, and `entries` results.

    Safe between threads.
    """

    def __init__(self, compute: Callable[..., Result], characters: int = 8_000_000, *, entries: int = ENTRIES) -> None:
        self._compute = compute
        self._characters, self._entries = characters, entries
        self._results: OrderedDict[tuple[str, ...], Result] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __call__(self, *texts: str) -> Result:
        with self._lock:
            if texts in self._results:
                self._results.move_to_end(texts)
                return self._results[texts]
        result = self._compute(*texts)
        with self._lock:
            if texts not in self._results:
                self._results[texts] = result
                self._size += sum(map(len, texts)) + len(texts)
            while len(self._results) > 1 and (self._size > self._characters or len(self._results) > self._entries):
                dropped, _ = self._results.popitem(last=False)
                self._size -= sum(map(len, dropped)) + len(dropped)
        return result

    def clear(self) -> None:
        with self._lock:
            self._results.clear()
            self._size = 0

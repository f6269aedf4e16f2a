"""A bounded memory of results per distinct text. Bounded by size, because one text may be a word or a megabyte."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Memo(Generic[Result]):
    """Remembers `compute(text)` for the texts used last, up to `characters` of text in all. Safe between threads."""

    def __init__(self, compute: Callable[[str], Result], characters: int = 8_000_000) -> None:
        self._compute = compute
        self._characters = characters
        self._known: OrderedDict[str, Result] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> Result:
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text]
        result = self._compute(text)
        with self._lock:
            if text not in self._known:
                self._known[text] = result
                self._held += len(text) + 1
            while self._held > self._characters and len(self._known) > 1:
                dropped, _ = self._known.popitem(last=False)
                self._held -= len(dropped) + 1
        return result

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self._held = 0

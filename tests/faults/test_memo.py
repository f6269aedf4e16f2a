"""What is remembered of texts is bounded however short they are: a service sees short answers for months."""

from __future__ import annotations

import gc
import tracemalloc

from calibrate.backends.memo import ENTRIES, Memo


def test_short_texts_are_bounded_by_number() -> None:
    memo = Memo(lambda text: text.split())
    tracemalloc.start()
    try:
        sizes = []
        for number in range(4 * ENTRIES):
            memo(f"order {number}")
            if (number + 1) % ENTRIES == 0:
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[-1] < 1.2 * sizes[0], sizes


def test_the_texts_used_last_are_the_ones_kept() -> None:
    computed: list[str] = []

    def note(text: str) -> str:
        computed.append(text)
        return text

    memo = Memo(note, entries=3)
    for text in ("a", "b", "c", "a", "d", "a", "c", "b"):
        assert memo(text) == text
    assert computed == ["a", "b", "c", "d", "b"]


def test_long_texts_are_still_bounded_by_size() -> None:
    computed: list[str] = []
    memo = Memo(lambda text: computed.append(text), characters=100)
    for text in ("x" * 60, "y" * 60, "x" * 60):
        memo(text)
    assert len(computed) == 3

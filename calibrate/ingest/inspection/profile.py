"""Count which fields the traces of a file have: what detectors read, and what else is good to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrate.types import Record, Trace

FIELDS = ("question", "context", "sources", "retrieval_scores", "tokens", "alternatives", "schema")
"""What is shown of what detectors read besides the answer, by the names of `Trace.presence`."""
MORE_FIELDS = ("timestamp", "model", "operation", "label")


@dataclass(frozen=True, slots=True)
class Profile:
    """What `n` traces hold: how many have each field, and how many have exactly this set of them."""

    n: int = 0
    filled: Mapping[str, int] = field(default_factory=dict)
    sets: Mapping[frozenset[str], int] = field(default_factory=dict)


NOTHING = Profile()


class Profiler:
    """Counts as the records come. Memory does not grow with their number."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[bool, ...]] = Counter()

    def add(self, record: Record) -> None:
        trace = record.trace
        more = trace.timestamp is not None, trace.model is not None, trace.operation is not None, bool(record.labels)
        self._counts[(*trace.presence.values(), *more)] += 1

    def profile(self) -> Profile:
        sets: Counter[frozenset[str]] = Counter()
        for presence, n in self._counts.items():
            sets[frozenset(name for name, is_there in zip(_NAMES, presence, strict=True) if is_there)] += n
        shown = (*FIELDS, *MORE_FIELDS)
        filled = {name: sum(n for names, n in sets.items() if name in names) for name in shown}
        return Profile(sum(self._counts.values()), filled, sets)


_NAMES = (*Trace("", "").presence, *MORE_FIELDS)

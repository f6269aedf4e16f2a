"""Which traces a purge means, and how much it removes."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime


@dataclass(frozen=True)
class Chosen:
    """Which traces: all of what is given must hold. `before`: logged before that moment, or imported before it where
    they carry no time. `where`: a model, operation or attribute has this value."""

    before: datetime | None = None
    trace_ids: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PurgeCounts:
    """How much goes, or went: traces, texts that only they use, given and drawn alternatives, scores with evidence or a
    reason, replies of chat endpoints, notes and spans of labels, reasons of decisions, flags still to be told."""

    traces: int = 0
    texts: int = 0
    alternatives: int = 0
    evidence: int = 0
    replies: int = 0
    notes: int = 0
    spans: int = 0
    decisions: int = 0
    alerts: int = 0

    def __add__(self, other: PurgeCounts) -> PurgeCounts:
        return PurgeCounts(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

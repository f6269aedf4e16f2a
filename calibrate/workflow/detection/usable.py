"""Which detectors can run on traces that are not in the store yet, known from which fields they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrate import registry, workspace
from calibrate.detectors.learned import NAME as LEARNED
from calibrate.ingest.inspection.profile import Profile


@dataclass(frozen=True)
class Usable:
    """On how many of the `total` traces a detector has every field that it reads; `lacks` counts, by field, those
    without it."""

    name: str
    title: str
    total: int
    able: int
    lacks: Mapping[str, int]

    @property
    def missing(self) -> str:
        """The field that fewest traces have; "" where some trace has them all, or there are no traces."""
        if self.able or not self.lacks:
            return ""
        return max(sorted(self.lacks), key=lambda name: self.lacks[name])


def usable(profile: Profile) -> tuple[Usable, ...]:
    """Look at every detector that computes scores, by title. What it takes to set one up is not looked at; one that
    learns from labels is there when a head is fitted."""
    rows = []
    for name in registry.installed():
        if name == LEARNED and workspace.current().head is None:
            continue
        detector = registry.get(name)
        needs = detector.needs | getattr(detector, "also_needs", frozenset())
        lacks = {
            need: lacking
            for need in sorted(needs)
            if (lacking := sum(n for names, n in profile.sets.items() if need not in names))
        }
        able = sum(n for names, n in profile.sets.items() if needs <= names)
        rows.append(Usable(name, detector.title, profile.n, able, lacks))
    return tuple(sorted(rows, key=lambda row: row.title.casefold()))


def by_missing(rows: Sequence[Usable]) -> dict[str, list[Usable]]:
    """The detectors that can run on none of the traces, by the field that they wait for."""
    fields: dict[str, list[Usable]] = {}
    for row in rows:
        if row.missing:
            fields.setdefault(row.missing, []).append(row)
    return fields

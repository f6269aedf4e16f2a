"""The scores that a note is written as: one for each detector, and one for the verdict."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from calibrate.ingest.stated_scores import OURS
from calibrate.ingest.systems.base import Note

VERDICT = f"{OURS}verdict"
MAX_COMMENT = 500
_SPACE = uuid.UUID("6f1b1a52-7d0b-4b7e-9f0e-0c6c8d1e4a35")  # of the ids that are made here


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """One score to write.

    Attributes
    ----------
    id : str
        A UUID, the same for the same note and name every time.
    name : str
        `touchstone.` and the detector's name, or `touchstone.verdict`.
    value : float or str
    kind : {"NUMERIC", "CATEGORICAL"}
    comment : str
        The release, the threshold, and the reasons.
    metadata : dict
        The same for programs.
    """

    id: str
    name: str
    value: float | str
    kind: Literal["NUMERIC", "CATEGORICAL"]
    comment: str
    metadata: dict[str, Any] = field(default_factory=dict)


def scores_of(note: Note) -> Iterator[WrittenScore]:
    """Write a note as scores. A detector without a score is left out.

    Parameters
    ----------
    note : Note

    Yields
    ------
    WrittenScore
        The verdict last: where it stands, all stand.
    """
    release = f"Touchstone release {note.version}"
    shared = {"release": note.version, "verdict": note.verdict, "tier": note.tier}
    for name, each in note.scores.items():
        if each.score is None:
            continue
        verb = "flagged" if each.flagged else "not flagged"
        at = "" if each.threshold is None else f", threshold {each.threshold!r}"
        yield _build(
            note, f"{OURS}{name}", each.score, "NUMERIC", f"{release}: {verb}{at}", each.reason,
            {**shared, "threshold": each.threshold, "flagged": each.flagged},
        )  # fmt: skip
    reasons = "; ".join(note.reasons)
    yield _build(note, VERDICT, note.verdict, "CATEGORICAL", f"{release}, tier {note.tier}", reasons, shared)


def _build(
    note: Note,
    name: str,
    value: float | str,
    kind: Literal["NUMERIC", "CATEGORICAL"],
    comment: str,
    reason: str | None,
    metadata: dict[str, Any],
) -> WrittenScore:
    text = f"{comment}: {reason}" if reason else comment
    return WrittenScore(str(uuid.uuid5(_SPACE, f"{note.key}\0{name}")), name, value, kind, text[:MAX_COMMENT], metadata)

"""Traces that labellers want the lead to look at. A flag says nothing of the verdict and counts in no figure."""

from __future__ import annotations

from datetime import datetime

from calibrate.errors import BadInput
from calibrate.types import Sample
from db import Store
from db.labelling.flags import Flag

LONGEST = 500  # characters of what a flag says

__all__ = ["Flag", "open_flags", "raise_flag", "settle", "withdraw"]


def raise_flag(
    store: Store, pk: int, labeller: str, *, note: str = "", sample: Sample | None = None, now: datetime
) -> None:
    """Flag a trace for the lead, or say something else with the flag that stands.

    Raises
    ------
    BadInput
        For a note that is too long.
    """
    if len(note) > LONGEST:
        raise BadInput(
            f"what a flag says has at most {LONGEST} characters, not {len(note)}: put the rest into the note"
        )
    text = " ".join(note.split()) or None
    store.flags.put(pk, labeller, sample_id=sample.id if sample else None, note=text, now=now)


def withdraw(store: Store, pk: int, labeller: str) -> None:
    """Take back one's own flag."""
    store.flags.remove(pk, labeller)


def open_flags(store: Store) -> list[Flag]:
    """The flags that wait for the lead, the oldest first."""
    return store.flags.open()


def settle(store: Store, pk: int, labeller: str, *, by: str, now: datetime) -> bool:
    """Close a flag; gives whether it was still open."""
    return store.flags.settle(pk, labeller, by=by, now=now)

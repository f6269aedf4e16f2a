"""How a sample is shared among its labellers, and what each of them labels next."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from calibrate.errors import BadInput
from calibrate.types import Sample
from db import Store
from db.labelling.assignments import Assignment, Mode

OVERLAP = 0.2
LEASE = timedelta(minutes=30)
MOST_AT_ONCE = 50
EVERYONE = Assignment("everyone")


def assign(
    store: Store,
    sample: Sample,
    mode: Mode,
    *,
    overlap: float = OVERLAP,
    seed: int | None = None,
    by: str,
    now: datetime,
) -> Assignment:
    """Share a sample among whoever labels it.

    Parameters
    ----------
    store, sample
        The store, and one of its samples.
    mode
        "everyone": all label all. "split": a trace is for whoever comes first.
    overlap
        Split: the chance of a trace to be labelled by two, 0 to 1. Which ones hangs on no score and no verdict, so
        agreement on them is that on the sample.
    seed
        Decides which; None: a new one.
    by, now
        Who says so, and when.

    Returns
    -------
    What counts now.

    Raises
    ------
    BadInput
        For a mode or an overlap that cannot be.
    """
    if mode not in ("everyone", "split"):
        raise BadInput(f"a sample is shared as everyone or split, not {mode!r}")
    if not 0 <= overlap <= 1:
        raise BadInput(f"an overlap of {overlap} is no share: give 0 to 1, like {OVERLAP}")
    if mode == "everyone":
        overlap = 0.0
    before = store.assignments.get(sample.id)
    if seed is None:
        seed = before.seed if before is not None else secrets.randbits(31)
    store.assignments.set(sample, Assignment(mode, overlap, seed), by=by, now=now)
    return assignment_of(store, sample)


def assignment_of(store: Store, sample: Sample) -> Assignment:
    """How a sample is shared; without a word of anybody, everyone labels all."""
    return store.assignments.get(sample.id) or EVERYONE


def next_items(
    store: Store, sample: Sample, labeller: str, count: int, *, now: datetime, lease: timedelta = LEASE
) -> list[int]:
    """The keys of the traces that a labeller labels next, in order; theirs alone while the lease lasts.

    Asking again gives the same traces as long as they are not labelled, and renews the lease; what was leased before
    and is not among them is given back. A label that comes after a lease has run out counts like any other. Raises
    BadInput for a count that cannot be.
    """
    if not 1 <= count <= MOST_AT_ONCE:
        raise BadInput(f"{count} traces cannot be handed out at once: ask for 1 to {MOST_AT_ONCE}")
    return store.assignments.take(sample.id, labeller, count, now=now, until=now + lease)


def give_back(store: Store, sample: Sample, labeller: str, pks: Sequence[int]) -> None:
    """Leave these traces to others: the labeller skipped them, or stops."""
    store.assignments.give_back(sample.id, labeller, pks)

"""How a sample is shared among its labellers, and what each of them labels next."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from calibrate.errors import BadInput
from calibrate.types import Sample
from db import Store
from db.labelling.assignments import Assignment, Mode

OVERLAP = 0.2
LEASE = timedelta(minutes=30)
MOST_AT_ONCE = 520  # what a browser may hold unsent, and what it asks for besides
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
    overlap = sharing_of(mode, overlap if mode == "split" else None).overlap
    before = store.assignments.get(sample.id)
    if seed is None:
        seed = before.seed if before is not None else secrets.randbits(31)
    store.assignments.set(sample, Assignment(mode, overlap, seed), by=by, now=now)
    return assignment_of(store, sample)


def sharing_of(mode: str, overlap: float | None = None) -> Assignment:
    """A way to share a sample; `overlap` None: the usual one. Raises BadInput for one that cannot be."""
    if mode not in ("everyone", "split"):
        raise BadInput(f"a sample is shared as everyone or split, not {mode!r}")
    if mode == "everyone":
        if overlap is not None:
            raise BadInput("an overlap is for a sample that is split: where everyone labels all, everything overlaps")
        return EVERYONE
    overlap = OVERLAP if overlap is None else overlap
    if not 0 <= overlap <= 1:
        raise BadInput(f"an overlap of {overlap} is no share: give 0 to 1, like {OVERLAP}")
    return Assignment("split", overlap)


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


def wanting(store: Store, sample: Sample, labeller: str, *, now: datetime) -> int:
    """How many traces of a sample a labeller may still label, as it is shared."""
    return store.assignments.wanting(sample.id, labeller, now)


@dataclass(frozen=True, slots=True)
class Hand:
    """What one labeller has of a sample: traces labelled, and those held under a lease that lasts."""

    labeller: str
    labelled: int
    held: int


def hands(store: Store, sample: Sample, *, now: datetime) -> list[Hand]:
    """Who has what of a sample, in the order of their names."""
    labelled, held = store.assignments.labelled(sample.id), store.assignments.held(sample.id, now)
    return [Hand(who, labelled.get(who, 0), len(held.get(who, ()))) for who in sorted({*labelled, *held})]


def give_all_back(store: Store, sample: Sample, labeller: str, *, now: datetime) -> int:
    """Leave everything that a labeller holds to others. Returns how many traces that are. Raises BadInput where they
    hold none."""
    held = store.assignments.held(sample.id, now).get(labeller, [])
    if not held:
        raise BadInput(f"{labeller!r} holds no trace of the sample {sample.name}: `assign` shows who holds some")
    give_back(store, sample, labeller, held)
    return len(held)

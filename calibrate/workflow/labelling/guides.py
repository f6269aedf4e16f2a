"""The team's labelling guide: what labellers are told, and the kinds of error that they choose from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from calibrate.errors import BadInput
from calibrate.types import Guide, Kind
from calibrate.workflow.labelling import guide_file
from db import Store


@cache
def first() -> Guide:
    """Version 0, which came with Touchstone and counts until a team saves one of its own."""
    text, kinds = guide_file.read(str(Path(__file__).with_name("first_guide.toml")))
    return Guide(0, text, kinds)


def current(store: Store) -> Guide:
    """The version that counts: its kinds are those that the labelling surface offers."""
    return store.guides.newest() or first()


def get(store: Store, version: int) -> Guide:
    """A version by its number, as a label names it. Raises BadInput where there is none."""
    guide = first() if version == 0 else store.guides.get(version)
    if guide is None:
        newest = current(store).version
        raise BadInput(f"the labelling guide has no version {version}: name one from 0 to {newest}")
    return guide


def history(store: Store) -> list[Guide]:
    """Every version, newest first; version 0 is the last."""
    return [*store.guides.history(), first()]


def known_kinds(store: Store) -> tuple[Kind, ...]:
    """Every kind of any version, as its newest version has it; those of the current version first."""
    kinds: dict[str, Kind] = {}
    for guide in history(store):
        for kind in guide.kinds:
            kinds.setdefault(kind.key, kind)
    return tuple(kinds.values())


def save(
    store: Store,
    text: str,
    kinds: Sequence[Kind],
    *,
    by: str,
    now: datetime,
    why: str | None = None,
    after: int | None = None,
) -> tuple[Guide, bool]:
    """Save a new version of the guide, unless it says what the current one says.

    Parameters
    ----------
    store
        The store.
    text
        The guidelines, as plain text.
    kinds
        The kinds of error, in the order of their digits.
    by
        Who changes the guide.
    now
        The time of the change.
    why
        What led to the change, for those who read the history.
    after
        The version that the change was made from; None: the newest at this moment.

    Returns
    -------
    The version that counts now, and whether it is new.

    Raises
    ------
    BadInput
        For a guide that labellers could not work with, or where somebody saved a version after `after`.
    """
    text, checked = guide_file.check(text, kinds)
    last = current(store)
    if (text, checked) == (last.text, last.kinds):
        return last, False
    made_from = last.version if after is None else after
    return store.guides.save(text, checked, by=by, now=now, why=why, after=made_from), True

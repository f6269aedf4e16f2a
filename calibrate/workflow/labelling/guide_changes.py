"""What a version of the labelling guide changed, and the keys of kinds that people name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from calibrate.types import Guide, Kind
from calibrate.workflow.labelling import guides
from calibrate.workflow.labelling.guide_file import LONGEST
from db import Store


@dataclass(frozen=True, slots=True)
class Changes:
    """From one version to the next. `lines` are those of the text, each with "+", "-" or " " before it, changed ones
    and their neighbours; `renamed` holds (before, after), and `redefined` the kinds whose meaning is another one."""

    lines: tuple[tuple[str, str], ...] = ()
    added: tuple[Kind, ...] = ()
    retired: tuple[Kind, ...] = ()
    renamed: tuple[tuple[Kind, Kind], ...] = ()
    redefined: tuple[Kind, ...] = ()
    reordered: bool = False

    def __bool__(self) -> bool:
        kinds = self.added or self.retired or self.renamed or self.redefined
        return bool(self.lines or kinds or self.reordered)


def changes(before: Guide, after: Guide) -> Changes:
    """What `after` changed."""
    old, new = ({kind.key: kind for kind in guide.kinds} for guide in (before, after))
    both = [key for key in new if key in old]
    return Changes(
        _lines(before.text, after.text),
        tuple(kind for key, kind in new.items() if key not in old),
        tuple(kind for key, kind in old.items() if key not in new),
        tuple((old[key], new[key]) for key in both if old[key].name != new[key].name),
        tuple(new[key] for key in both if old[key].meaning != new[key].meaning),
        both != [key for key in old if key in new],
    )


def retired(store: Store) -> tuple[Kind, ...]:
    """The kinds of older versions that the current one does not offer; labels keep them."""
    current = {kind.key for kind in guides.current(store).kinds}
    return tuple(kind for kind in guides.known_kinds(store) if kind.key not in current)


def kinds_named(store: Store, rows: Sequence[tuple[str | None, str, str]]) -> list[Kind]:
    """Kinds from (key, name, meaning), as people fill them in: a new one gets a key from its name, and one with the
    name of a retired kind is that kind again. Rows without name and meaning are left out."""
    ever = guides.known_kinds(store)
    by_name = {kind.name.casefold(): kind.key for kind in ever}
    taken = {kind.key for kind in ever} | {key for key, _, _ in rows if key}
    kinds: list[Kind] = []
    for key, name, meaning in rows:
        name, meaning = name.strip(), meaning.strip()
        if not name and not meaning:
            continue
        used = {kind.key for kind in kinds} | {other for other, _, _ in rows if other}
        old = by_name.get(name.casefold())
        if not key:
            key = old if old and old not in used else new_key(name, taken)
        taken.add(key)
        kinds.append(Kind(key, name, meaning))
    return kinds


def new_key(name: str, taken: Collection[str]) -> str:
    """A key for a kind of this name that no other kind has or had: "wrong_date", "wrong_date_b"."""
    words = re.sub(r"[^a-z]+", "_", name.casefold()).strip("_")[: LONGEST["key"] - 4].strip("_") or "kind"
    key = words
    while key in taken:
        words, last = (key[:-1], key[-1]) if re.search(r"_[b-y]$", key) else (key + "_", "a")
        key = words + chr(ord(last) + 1)
    return key


def _lines(before: str, after: str) -> tuple[tuple[str, str], ...]:
    rows = list(difflib.unified_diff(before.split("\n"), after.split("\n"), n=1, lineterm=""))[2:]
    return tuple((row[0], row[1:]) for row in rows if row[:1] in "+- " and row)

"""Options that read NAME=VALUE. Imports nothing of the workbench: the installed `touchstone` reads them too."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.errors import BadInput


def parse_pairs(items: Sequence[str], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` options as a mapping. Raises BadInput for an item without `=`, and for a name given twice."""
    pairs: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadInput(f"{option} {item!r} should read NAME=VALUE")
        name = name.strip()
        if name in pairs:
            raise BadInput(f"{option} names {name!r} twice, {pairs[name]!r} and {value.strip()!r}: give it once")
        pairs[name] = value.strip()
    return pairs

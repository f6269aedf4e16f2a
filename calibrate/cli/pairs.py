"""Options that read NAME=VALUE. Imports nothing of the workbench: the installed `touchstone` reads them too."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.errors import BadInput


def parse_pairs(items: Sequence[str], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` options as a mapping. Raises BadInput for an item without `=`."""
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise BadInput(f"{option} {item!r} should read NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs

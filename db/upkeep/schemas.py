"""The revisions of the schema that this Touchstone knows."""

from __future__ import annotations

from db.engine import MIGRATIONS


def known_schemas() -> tuple[str, ...]:
    """Oldest first. A migration's file begins with its revision."""
    return tuple(sorted(path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py")))

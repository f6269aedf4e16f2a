"""Times of PostgreSQL that Python has none for, like infinity or the year 10000: read as the text that they are.

The driver raises for such a value, and that would end the reading of every other row.
"""

from __future__ import annotations

from typing import Any


def take_any_time(connection: Any) -> None:
    """Let a connection read times that it would raise for."""
    from psycopg import DataError
    from psycopg.types import datetime as loaders

    def lenient(base: Any) -> Any:
        class Lenient(base):  # type: ignore[misc]
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return Lenient

    for name in ("date", "timestamp", "timestamptz", "time", "timetz", "interval"):
        base = getattr(loaders, f"{name.capitalize()}Loader")
        connection.adapters.register_loader(name, lenient(base))

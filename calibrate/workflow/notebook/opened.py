"""A store that is open in a notebook, until it is closed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self

from calibrate.errors import BadInput
from calibrate.workflow.traces.external_scores import use_external
from db import Store


class Opened:
    """What every method works on.

    Parameters
    ----------
    store : Store
        An open store. It is closed with this.
    """

    def __init__(self, store: Store) -> None:
        self._opened = store
        self._closed = False

    @property
    def _store(self) -> Store:
        if self._closed:
            raise BadInput("the workbench is closed: open it again with calibrate.open")
        use_external(self._opened)  # a shell beside may have defined one since
        return self._opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._opened.name}{', closed' if self._closed else ''}>"

    def close(self) -> None:
        """Close the store. Whatever is called after that raises BadInput."""
        self._closed = True
        self._opened.close()


def now() -> datetime:
    """The time that is written beside what is done."""
    return datetime.now(UTC)

"""Errors that a user may see. Each message names the thing, the value and the remedy; none needs a traceback."""

from __future__ import annotations

NOT_WRITTEN = "nothing of this step was kept"


class TouchstoneError(Exception):
    """Something Touchstone could not do. The CLI exits 1."""

    exit_code = 1


class BadInput(TouchstoneError):
    """The user's input cannot be used as it is. The CLI exits 2."""

    exit_code = 2


class Forbidden(BadInput):
    """The person who acts has no role that allows it, or is not known well enough."""


class UnknownDetector(BadInput):
    """No detector of that name."""


class BadThresholds(BadInput):
    """A thresholds file that must not be used: wrong format number, wrong digest, missing or impossible field."""


class StoreError(TouchstoneError):
    """The store cannot be opened, read or written."""


class StoreReplaced(StoreError):
    """The file of an open store was deleted or replaced. `reopen`: the file that is there now can be opened instead."""

    def __init__(self, message: str, *, reopen: bool) -> None:
        super().__init__(message)
        self.reopen = reopen


class Unavailable(TouchstoneError):
    """A required model or service is missing; the message says how to get it."""

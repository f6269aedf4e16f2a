"""The detectors that a store brings along: those whose scores were imported, by whichever session or command."""

from __future__ import annotations

from contextlib import suppress

from calibrate.errors import TouchstoneError
from calibrate.workflow.traces.external_scores import use_external
from pages.shell.frame import opened


def put_in_place() -> None:
    """Let the pages know them, as they are now. A store that cannot be opened is for the page to say."""
    with suppress(TouchstoneError):
        use_external(opened())

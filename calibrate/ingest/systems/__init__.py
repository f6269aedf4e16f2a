"""Systems that hold traces: what `pull` reads from them, and what `watch --annotate` writes back. One module a system.

A module's client is imported when it is used, and is no dependency of the product.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

from calibrate.errors import BadInput
from calibrate.ingest.systems.base import Annotator, PullRequest, Source

SYSTEMS = ("langfuse", "phoenix", "mlflow", "langsmith", "sql")
"""Those that can be pulled from. Each is a module of this package with `open_source(request) -> Source`."""
ANNOTATED = ("phoenix", "mlflow", "langfuse", "langsmith", "otel")
"""Those that can be written to. Each is a module with `open_annotator(project) -> Annotator`."""


def open_source(system: str, request: PullRequest) -> Source:
    """Open a system to read from.

    Parameters
    ----------
    system : str
        One of `SYSTEMS`.
    request : PullRequest

    Returns
    -------
    Source

    Raises
    ------
    BadInput
        If there is no such system, or the request lacks something.
    Unavailable
        If its client is not installed.
    """
    return cast(Source, _module(system, SYSTEMS, "pull from").open_source(request))


def open_annotator(system: str, project: str | None = None) -> Annotator:
    """Open a system to write scores to.

    Parameters
    ----------
    system : str
        One of `ANNOTATED`.
    project : str, optional
        Its project or experiment, where the system needs one.

    Returns
    -------
    Annotator

    Raises
    ------
    BadInput
        If there is no such system, or a setting is missing.
    Unavailable
        If its client is not installed.
    """
    return cast(Annotator, _module(system, ANNOTATED, "write to").open_annotator(project))


def _module(system: str, systems: tuple[str, ...], what: str) -> Any:
    name = f"{__name__}.{system}"
    try:
        if system in systems:
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    raise BadInput(f"there is no system {system!r} to {what}; there are {', '.join(systems)}")

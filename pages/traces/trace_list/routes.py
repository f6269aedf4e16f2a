"""The address that the list asks for its next rows."""

from __future__ import annotations

from typing import Any

from starlette.routing import BaseRoute

from pages.shell import requests

PATH = "traces-list"


def routes() -> list[BaseRoute]:
    return [requests.route(PATH, "traces", _rows)]


def _rows(*given: Any) -> Any:
    from pages.traces.trace_list import rows  # heavy, and the server's start needs none of it

    return rows.rows(*given)

"""`/healthz`: whether the workbench can read its store, for whatever restarts it or calls somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def routes() -> list[Route]:
    return [Route("/healthz", _health)]


def _health(_: Request) -> Response:
    from calibrate.serve import healthy  # with what opens a store: the server's start needs none of it
    from pages.shell import frame

    return healthy(lambda: frame.opened().releases.count())

"""The addresses of the labelling surface: its scripts, and what they ask of the store."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pages.shell import requests

_FOLDER = Path(__file__).parent / "surface"
_TYPES = {".js": "text/javascript", ".css": "text/css"}
PAGE = "label"  # whoever may open this page may label


def routes() -> list[BaseRoute]:
    return [
        requests.route("labelling/ahead", PAGE, _ahead),
        requests.route("labelling/answer", PAGE, _answer),
        Route(requests.address("labelling/surface/{digest}/{name}"), script, methods=["GET"]),
    ]


@cache
def scripts() -> dict[str, bytes]:
    """The modules by name. Read once: a page and its modules are of one version."""
    return {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


@cache
def digest() -> str:
    """Changes with the modules, so that no browser mixes two versions."""
    return hashlib.sha256(b"".join(scripts().values())).hexdigest()[:16]


async def script(request: Request) -> Response:
    name = request.path_params["name"]
    if request.path_params["digest"] != digest() or name not in scripts():
        return Response("There is no such script; load the page again.\n", 404, media_type="text/plain")
    lasting = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(scripts()[name], 200, lasting, _TYPES[Path(name).suffix])


def _ahead(*given: Any) -> Any:
    from pages.components.labelling import turns  # heavy, and the server's start needs none of it

    return turns.ahead(*given)


def _answer(*given: Any) -> Any:
    from pages.components.labelling import turns

    return turns.take(*given)

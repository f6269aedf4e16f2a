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
# Each kind of work (works.py) and its page: whoever may open the page may do the work.
PAGES = {"sample": "label", "recheck": "recheck", "disputes": "agreement", "traces": "label"}


def routes() -> list[BaseRoute]:
    every: list[BaseRoute] = []
    for kind, page in PAGES.items():
        every.append(requests.route(f"{folder(kind)}ahead", page, _does("ahead", kind)))
        every.append(requests.route(f"{folder(kind)}answer", page, _does("take", kind)))
    return [
        *every,
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


def folder(kind: str) -> str:
    """Where the requests of a kind of work go."""
    return "labelling/" if kind == "sample" else f"labelling/{kind}/"


def _does(name: str, kind: str) -> requests.Work:
    def act(*given: Any) -> Any:
        from pages.components.labelling import turns, works  # heavy, and the server's start needs none of it

        return getattr(turns, name)(works.WORKS[kind], *given)

    return act

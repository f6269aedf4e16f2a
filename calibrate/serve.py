"""Serve releases over HTTP, for runtimes that load their thresholds from a URL. Read-only.

    GET /thresholds/active.json     the newest release, byte for byte; its ETag is the sha256 of those bytes
    GET /thresholds/7.json          release 7
    GET /schema/thresholds-1.json   the JSON Schema of the file, without a token; its $id is this address
    GET /healthz                    200, or 503 with the reason where the store cannot be read; without a token
    POST /v1/traces                 spans over OTLP, where the server also receives (calibrate.receiving)

A reader that sends the ETag back in If-None-Match gets 304 without a body until something else is released.
"""

from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrate.errors import BadInput, TouchstoneError
from calibrate.settings import hide_secrets
from calibrate.thresholds.checks import FORMAT, schema

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from calibrate.receiving.routes import Receiver


@dataclass(frozen=True, slots=True)
class Document:
    """A release to serve. `sha256` is that of `content`, in hexadecimal."""

    version: int
    content: bytes
    sha256: str


Find = Callable[[int | None], Document | None]  # a version, None for the active one → its document, None for none
SCHEMAS = tuple(f"/schema/thresholds-{number}.json" for number in range(1, FORMAT + 1))
"""Addresses of the format's schema. The newest says what older formats hold, too; the older addresses stay."""
SCHEMA = SCHEMAS[-1]
VERSION = re.compile("[1-9][0-9]{0,8}")


def routes(find: Find, *, token: str = "") -> list[Route]:
    """Make the routes, for any ASGI application. With a `token`, releases need `Authorization: Bearer <token>`.

    `find` is called in a thread for every request, so that a new release is served at once.
    """
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def active(request: Request) -> Response:
        return _answer(request, find, None, token)

    def by_version(request: Request) -> Response:
        return _answer(request, find, request.path_params["version"], token)

    def show_schema(request: Request) -> Response:
        document = {**schema(), "$id": str(request.url.replace(query=""))}
        return JSONResponse(document, media_type="application/schema+json", headers={"Cache-Control": "no-cache"})

    def health(_: Request) -> Response:
        return healthy(lambda: find(None))

    return [
        Route("/thresholds/active.json", active),
        Route("/thresholds/{version}.json", by_version),
        *(Route(address, show_schema) for address in SCHEMAS),
        Route("/healthz", health),
    ]


def healthy(look: Callable[[], object]) -> Response:
    """Answer whether a look at the store succeeds: 200, with what it returns as details, or 503 with the reason."""
    from starlette.responses import JSONResponse

    try:
        details = look()
    except TouchstoneError as error:
        return _refuse(503, hide_secrets(str(error)))
    more = details if isinstance(details, Mapping) else {}
    return JSONResponse({"status": "ok", **more}, headers={"Cache-Control": "no-store"})


def application(find: Find | None, *, token: str = "", receiver: Receiver | None = None) -> Starlette:
    """Make an application with these routes only: those of releases, of a receiver of spans, or both.

    Errors are JSON with a sentence.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    def explain(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        addresses = f"/thresholds/active.json, /thresholds/VERSION.json, {SCHEMA} and /healthz, with GET or HEAD"
        if find is None:
            addresses = "/healthz, with GET or HEAD"
        if receiver is not None:
            addresses += ", and /v1/traces, with POST, for spans"
        return _refuse(error.status_code, f"{error.detail}: here are {addresses}", **(error.headers or {}))

    def health(_: Request) -> Response:
        return healthy(receiver.health if receiver is not None else lambda: None)

    # The receiver's report on the store's health comes first, and so in place of the other.
    received = [] if receiver is None else [*receiver.routes(), Route("/healthz", health)]
    released = [] if find is None else routes(find, token=token)
    app = Starlette(routes=[*received, *released], exception_handlers={HTTPException: explain})
    app.router.redirect_slashes = False  # an address is right or wrong
    return app


def listen(host: str, port: int) -> socket.socket:
    """Open a socket to serve on; port 0 chooses a free one. Raises BadInput with the remedy if that fails."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, OverflowError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"cannot serve on {host}:{port}: {reason}; give another --port or --host") from None


def address_of(at: socket.socket) -> str:
    """The base of the URLs at which a socket is reached."""
    host, port = at.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(app: Starlette, at: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM. Requests in progress are answered first."""
    import uvicorn

    from calibrate.connections import PatientProtocol

    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[at])


def _answer(request: Request, find: Find, version: str | None, token: str) -> Response:
    """Answer with the release of this version, as the address has it; None means the active one."""
    from starlette.responses import Response

    if token and not is_allowed(request.headers.get("authorization", ""), token):
        return _refuse(401, "this needs the header Authorization: Bearer TOKEN", **{"WWW-Authenticate": "Bearer"})
    try:
        release = find(None) if version is None else find(int(version)) if VERSION.fullmatch(version) else None
        newest = release or find(None)
    except TouchstoneError as error:
        return _refuse(503, str(error))
    if release is None:
        if version is not None and newest is not None:
            return _refuse(404, f"there is no release {version[:40]}; the newest is {newest.version}")
        return _refuse(404, "nothing was released yet; `python -m calibrate release`, or the Release page, makes one")
    headers = {
        "ETag": f'"{release.sha256}"',
        "Cache-Control": "no-cache",
        "Link": f'<{SCHEMA}>; rel="describedby"',
    }
    if _is_current(request.headers.get("if-none-match", ""), release.sha256):
        return Response(status_code=304, headers=headers)
    return Response(release.content, media_type="application/json", headers=headers)


def is_allowed(header: str, token: str) -> bool:
    """Compare in constant time, so that the duration reveals nothing about the token."""
    scheme, _, credentials = header.partition(" ")
    return hmac.compare_digest(credentials.strip().encode(), token.encode()) and scheme.lower() == "bearer"


def _is_current(header: str, sha256: str) -> bool:
    """Tell whether If-None-Match names this document (RFC 9110, 13.1.2: a list, compared weakly, or *)."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or f'"{sha256}"' in tags


def _refuse(status: int, sentence: str, **headers: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": sentence}, status, headers={"Cache-Control": "no-store", **headers})

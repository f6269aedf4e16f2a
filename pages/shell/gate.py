"""What every request to the workbench's server passes: who may be believed about whom, and what an answer carries.

Nothing here asks anything of the outside: Streamlit would look up this machine's public address, at an address service,
to print it and to compare origins with it.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import cli_util, config, net_util
from streamlit.auth_util import get_origin_from_redirect_uri, get_secrets_auth_section
from streamlit.runtime import Runtime
from streamlit.runtime.pages_manager import PagesManager
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_websocket

from calibrate import settings

log = logging.getLogger("touchstone")

PEER = b"x-touchstone-peer"
"""Set by this module alone, on every request: the address that the socket is connected to, or PROXIED."""
PROXIED = b"proxied"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
HEADERS = [
    (b"content-security-policy", b"frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
HELD_UPLOADS = 2
"""Uploads of the largest size that may wait in memory at once; a page that reads one takes it from there."""
_NAMES = {name for name, _ in HEADERS}
_METRICS, _UPLOAD = "/_stcore/metrics", "/_stcore/upload_file/"
_NAMELESS = b"Only those whom the proxy in front of this workbench names may upload.\n"
_FULL = b"Too many uploads wait in this workbench's memory. Close a page that uploads, or try again later.\n"
_REFUSED = b"This workbench serves its own machine only. To let others in, see docs/how-to/team.md.\n"


def prepare() -> None:
    """Keep Streamlit from asking others, and from serving files under pages/ past the navigation."""
    net_util.get_external_ip = _no_address
    net_util.get_internal_ip = _own_address
    starlette_websocket.is_url_from_allowed_origins = _is_listed_origin  # type: ignore[attr-defined]
    PagesManager.uses_pages_directory = False


def middleware() -> list[Middleware]:
    return [Middleware(Gate)]


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Open the browser where somebody sits at this machine; warn where nothing says who comes by the network."""
    if not (serves_this_machine_only() or settings.identity().header or get_secrets_auth_section()):
        log.warning(
            "the workbench listens on the network, and nothing says who its visitors are: each may read every trace "
            "and change everything under any name; docs/how-to/team.md says how people sign in"
        )
    if not config.get_option("server.headless"):
        timer = threading.Timer(1, cli_util.open_browser, [server_util.get_url("localhost")])
        timer.daemon = True
        timer.start()
    yield


def serves_this_machine_only() -> bool:
    """Whether the server listens on no network address."""
    return config.get_option("server.address") in LOCAL_HOSTS


def is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def is_local_page(origin: str) -> bool:
    """Whether a page that opened a web socket was itself loaded from this machine, and not by way of a proxy."""
    return not origin or urlsplit(origin).hostname in LOCAL_HOSTS


class Gate:
    """The outermost of the server's middleware, for pages, files and web sockets alike."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        given = settings.identity()
        peer = _peer(scope)
        headers = [header for header in scope["headers"] if header[0] != PEER]
        is_proxy = given.trusts(peer.decode())
        if not is_proxy and given.header:
            headers = [header for header in headers if header[0] != given.header.encode()]
        headers.append((PEER, peer))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                rest = [header for header in message.get("headers", ()) if header[0].lower() not in _NAMES]
                message = {**message, "headers": [*rest, *HEADERS]}
            await send(message)

        if serves_this_machine_only() and not is_proxy and not _is_own_name(scope):
            await _refuse(scope, send_with_headers)
            return
        path, names = str(scope.get("path", "")), {name for name, _ in headers}
        if _METRICS in path and not (serves_this_machine_only() and is_loopback(peer.decode())):
            await _refuse(scope, send_with_headers)  # what it counts is for the operator
            return
        if _UPLOAD in path and given.header and given.header.encode() not in names:
            await _refuse(scope, send_with_headers, _NAMELESS)  # what no page would read still fills the memory
            return
        if _UPLOAD in path and _held_uploads() > HELD_UPLOADS * config.get_option("server.maxUploadSize") * 2**20:
            await _refuse(scope, send_with_headers, _FULL)
            return
        if _is_nested_page(scope):
            await _lead_to(scope, "/no-such-page", send_with_headers)
            return
        await self.app({**scope, "headers": headers}, receive, send_with_headers)


def _peer(scope: Scope) -> bytes:
    """The socket's address. Where uvicorn was left to believe X-Forwarded-For, whoever sent it may be anybody."""
    forwarded = any(name in (b"x-forwarded-for", b"forwarded") for name, _ in scope["headers"])
    if os.environ.get("FORWARDED_ALLOW_IPS") != "" and forwarded:
        return PROXIED
    client = scope.get("client")
    return str(client[0]).encode() if client else PROXIED


def _is_own_name(scope: Scope) -> bool:
    """Whether the Host is a name that this server goes by: a page of another host whose name was made to point here
    must not be taken for ours."""
    host = next((value.decode("latin1") for name, value in scope["headers"] if name == b"host"), "")
    names = [*LOCAL_HOSTS, *config.get_option("server.allowedHosts")]
    if origin := get_origin_from_redirect_uri():
        names.append(urlsplit(origin).hostname or "")
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".") in names
    except ValueError:
        return False


def _is_listed_origin(url: str) -> bool:
    """Whether the operator lists the host of a page that is not ours. Streamlit would let in any page of localhost: a
    page on a visitor's own machine, whose sign-in goes with its requests."""
    names = [urlsplit(listed.strip()).hostname for listed in config.get_option("server.corsAllowedOrigins")]
    return urlsplit(url).hostname in {name for name in names if name}


def _held_uploads() -> int:
    """Bytes of uploads that wait in memory for a page to take them, of all sessions."""
    if not Runtime.exists():
        return 0
    storage = getattr(Runtime.instance().uploaded_file_mgr, "file_storage", {})
    return sum(len(file.data) for files in list(storage.values()) for file in list(files.values()))


def _is_nested_page(scope: Scope) -> bool:
    """Whether a browser opens an address below another: no page is there, and Streamlit would show an empty one."""
    if scope["type"] != "http" or scope.get("method") != "GET":
        return False
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    parts = scope["path"].strip("/").removeprefix(base).strip("/").split("/")
    own = parts[0].startswith("_") or parts[0] in ("auth", "component", "media", "static")
    return accepted.startswith(b"text/html") and len(parts) > 1 and not own and "." not in parts[-1]


async def _lead_to(scope: Scope, address: str, send: Send) -> None:
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    location = (f"/{base}" if base else "") + address
    await send({"type": "http.response.start", "status": 303, "headers": [(b"location", location.encode())]})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send, why: bytes = _REFUSED) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": why})


def _no_address() -> None:
    return None


def _own_address() -> str | None:
    """This machine's address in its network, as its routes give it; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 1))  # an address that is kept for documents
            return str(ipaddress.ip_address(probe.getsockname()[0]))
        except OSError:
            return None

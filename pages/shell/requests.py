"""Requests of a page's scripts, answered by routes of our own: let in by the checks that a page's web socket passes.

All are POST with a JSON body: a browser then says which page asks (Origin), also of reads, and asks before it sends the
like for a page of another host.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from streamlit import config
from streamlit.url_util import make_url_path
from streamlit.web.server.starlette import starlette_websocket as streamlit_socket
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from calibrate import settings
from calibrate.errors import BadInput, Forbidden, StoreError, TouchstoneError
from db import Store
from db.audit import acting_as
from pages.shell import identity, roles
from pages.shell.frame import opened
from pages.shell.identity import Person, Unknown, Visit

log = logging.getLogger("touchstone")

LONGEST = 2_000_000  # bytes of a body
Work = Callable[[Store, Person, Mapping[str, Any]], Mapping[str, Any]]


class Refused(Forbidden):
    """A request that no page of ours sent."""


def route(path: str, key: str, work: Work) -> Route:
    """A route whose answer `work` gives, for those whose roles open the page of this key. `work` gets the store, who
    asks, and the body; it runs in a thread, and what it writes is written by that person."""

    async def answer(request: Request) -> Response:
        try:
            body = await _body(request)
            return await run_in_threadpool(_serve, request, key, work, body)
        except TouchstoneError as error:
            return _refusal(error)

    return Route(address(path), answer, methods=["POST"])


def address(path: str) -> str:
    """A path below the address that this server is reached at."""
    return make_url_path(config.get_option("server.baseUrlPath") or "", path)


def document(content: Mapping[str, Any], status: int = 200) -> Response:
    """JSON in ASCII: half a pair of surrogates in a trace has no UTF-8."""
    return Response(json.dumps(content), status, {"cache-control": "no-store"}, "application/json")


class _Headers:
    """Starlette's headers as Streamlit shows them to a page."""

    def __init__(self, request: Request) -> None:
        self._headers = request.headers

    def get(self, name: str, default: str) -> str:
        return self._headers.get(name, default)

    def get_all(self, name: str) -> list[str]:
        return self._headers.getlist(name)

    def __contains__(self, name: object) -> bool:
        return name in self._headers

    def __len__(self) -> int:
        return len(self._headers)


def _is_ours(origin: str, host: str | None) -> bool:
    try:
        return bool(streamlit_socket._is_origin_allowed(origin, host))
    except ValueError:  # no address at all
        return False


async def _body(request: Request) -> Mapping[str, Any]:
    """What a page of ours sent. Raises Refused for what another may have sent."""
    origin, host = request.headers.get("origin"), request.headers.get("host")
    if not origin or not _is_ours(origin, host):
        raise Refused("This request does not come from a page of this workbench.")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("This request is not JSON, so no page of this workbench sent it.")
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > LONGEST:
            raise BadInput(f"a request takes at most {LONGEST} bytes; this one is longer")
    try:
        body = json.loads(raw)
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadInput("the request holds half a pair of surrogates, which is no text") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the request is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadInput("the request is no JSON object")
    return body


def _serve(request: Request, key: str, work: Work, body: Mapping[str, Any]) -> Response:
    try:
        store = opened()
        someone = identity.person(Visit(_Headers(request), _claims(request), str(body.get("typed") or "")))
        with acting_as(someone.actor):
            try:
                if not roles.opens(someone.roles, key):
                    raise Forbidden(f"{someone.name} may not do this: the page {key} is not open to their role")
                return document(work(store, someone, body))
            except Forbidden as error:
                with suppress(TouchstoneError):
                    store.audit.refused(str(error))
                raise
    except TouchstoneError as error:
        return _refusal(error)
    except Exception:
        log.error("a request failed\n%s", settings.hide_secrets(traceback.format_exc()))
        return document({"error": "Something went wrong here. The log of the server has the details."}, 500)


def _claims(request: Request) -> Mapping[str, Any]:
    """What the provider said, from the signed cookie, as Streamlit reads it for a page."""
    if not identity.signs_in():
        return {}
    raw = streamlit_socket._get_signed_cookie_with_chunks(request.cookies, USER_COOKIE_NAME)
    claims: dict[str, Any] = {}
    if raw:
        claims.update(streamlit_socket._parse_decoded_user_cookie(raw, request.headers["origin"]))
    claims.update(streamlit_socket.gather_user_info(request.headers))
    return claims


def _refusal(error: TouchstoneError) -> Response:
    status = 401 if isinstance(error, Unknown) else 403 if isinstance(error, Forbidden) else 400
    if isinstance(error, StoreError):
        status = 503  # to be sent again
    return document({"error": settings.hide_secrets(str(error))}, status)

"""Post to a webhook, or to a receiver. The URL is a secret, as Slack's are: no reason returned here repeats it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from calibrate.errors import BadInput


class Reply(NamedTuple):
    """What a server answered: its status, None where it could not be reached; the first bytes; and what kept it from
    accepting, as a clause."""

    status: int | None
    problem: str | None = None
    retry_after: str | None = None
    body: bytes = b""


def check_url(url: str, name: str = "the webhook's URL") -> str:
    """Check the URL of a webhook.

    Parameters
    ----------
    url : str
    name : str
        What it is called where it was given.

    Returns
    -------
    str
        The URL.

    Raises
    ------
    BadInput
        If it is none. The message does not repeat it: it is a secret.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        good = good and "@" not in parts.netloc  # a password there would be looked up as part of the host's name
    except (ValueError, AttributeError):
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise BadInput(
            f"{name} is invalid: it must begin with https:// and have no spaces, and no name and password before the "
            "host (not shown here)"
        )
    return url


def post(url: str, document: Mapping[str, Any], *, timeout: float) -> str | None:
    """Post the document once, following no redirect.

    Parameters
    ----------
    url : str
        An http(s) URL.
    document : mapping
        Anything `json.dumps` takes.
    timeout : float
        Seconds that the server may be silent, above 0. A server that trickles bytes can take longer in all.

    Returns
    -------
    str or None
        None when the server accepted it, else the reason as a clause: "it answered 500".
    """
    headers = {"Content-Type": "application/json; charset=utf-8"}
    try:
        body = json.dumps(document).encode()
    except Exception as error:
        return f"it could not be reached ({type(error).__name__})"
    return send(url, body, headers, timeout=timeout).problem


def send(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float, most: int = 0) -> Reply:
    """Post a body once, following no redirect.

    Parameters
    ----------
    url : str
        An http(s) URL.
    body : bytes
    headers : mapping of str to str
    timeout : float
        Seconds that the server may be silent, above 0.
    most : int
        Bytes of the answer to read.

    Returns
    -------
    Reply
    """
    from urllib.error import HTTPError  # urllib.request and ssl take 60 ms to import
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirects(HTTPRedirectHandler):
        """The document goes to the address that somebody configured, or nowhere."""

        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        request = Request(url, body, {**headers, "User-Agent": "touchstone"}, method="POST")
        with build_opener(NoRedirects).open(request, timeout=timeout) as response:
            return Reply(response.status, body=response.read(most) if most else b"")
    except HTTPError as error:
        error.close()
        return Reply(error.code, f"it answered {error.code}", error.headers.get("Retry-After"))
    except Exception as error:  # the text of any of them may quote the URL
        reason = getattr(error, "reason", error)
        clause = f"it could not be reached ({getattr(reason, 'strerror', None) or type(reason).__name__})"
        return Reply(None, clause)


def escape_slack(text: str) -> str:
    """Escape the three characters that Slack treats specially: <…> is a link or a call to everybody, & an escape."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

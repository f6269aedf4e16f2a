"""Send a JSON document to a webhook. The URL is a secret, as Slack's are: no reason returned here repeats it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from calibrate.errors import BadInput


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
    from urllib.error import HTTPError  # urllib.request and ssl take 60 ms to import
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirects(HTTPRedirectHandler):
        """The document goes to the address that somebody configured, or nowhere."""

        def redirect_request(self, *_: Any) -> None:
            return None

    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "touchstone"}
    try:
        request = Request(url, json.dumps(document).encode(), headers, method="POST")
        with build_opener(NoRedirects).open(request, timeout=timeout):
            return None
    except HTTPError as error:
        error.close()
        return f"it answered {error.code}"
    except Exception as error:  # the text of any of them may quote the URL
        reason = getattr(error, "reason", error)
        return f"it could not be reached ({getattr(reason, 'strerror', None) or type(reason).__name__})"


def escape_slack(text: str) -> str:
    """Escape the three characters that Slack treats specially: <…> is a link or a call to everybody, & an escape."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""Ask a server again that is busy or out of reach for a moment: as it says, else after pauses that double."""

from __future__ import annotations

import email.utils
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from calibrate.errors import BadInput, TouchstoneError
from calibrate.ingest.systems.base import PullRequest
from calibrate.urls import scrub

T = TypeVar("T")
ATTEMPTS = 6
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds; doubled every time
BUSY = (408, 425, 429, 500, 502, 503, 504)
_UNKNOWN_FORM = (ValueError, TypeError, LookupError, AttributeError)  # what clients make of JSON they do not expect


def patiently(
    call: Callable[[], T], request: PullRequest, what: str, *, secrets: tuple[str, ...] = (), attempts: int = ATTEMPTS
) -> T:
    """Call, and call again where the server is busy or cannot be reached.

    Works for the errors of httpx, requests and urllib, and for those of clients that carry a status code.

    Parameters
    ----------
    call : callable
        One request that may be repeated.
    request : PullRequest
        Whose `wait` and `notice` are used.
    what : str
        The system, as an error names it.
    secrets : tuple of str
        Keys that an error must not show.
    attempts : int

    Returns
    -------
    what `call` returns

    Raises
    ------
    BadInput
        If the server refuses: 400 to 404 and the like. If what answers is not its API.
    TouchstoneError
        If it does not answer after all attempts.
    """
    for attempt in range(attempts):
        try:
            return call()
        except TouchstoneError:
            raise
        except Exception as error:
            status = status_of(error)
            if _is_no_json(error) or (status is not None and 200 <= status < 300):
                raise BadInput(
                    f"{what} answers with something that is no JSON of its API: give the server's own address, without "
                    "the path of a page, and look whether a page to sign in, or a proxy, stands before it"
                ) from error
            reason = scrub(_reason(error, status), [request.url or ""], secrets)
            if status is None and not _is_network(error):
                if not isinstance(error, _UNKNOWN_FORM):
                    raise
                raise BadInput(
                    f"{what} answers in a form that its client does not know ({type(error).__name__}): look whether "
                    "this is the server's address and whether server and client are up to date, or export what it "
                    "holds and import the file"
                ) from error
            if status is not None and status not in BUSY:
                raise BadInput(f"{what} refuses: {reason}{_remedy(status)}") from error
            if attempt == attempts - 1:
                raise TouchstoneError(f"{what} did not answer in {attempts} attempts: {reason}") from error
            pause = retry_after(error, request.now())
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt) if pause is None else min(pause, 5 * LONGEST_PAUSE)
            request.notice(f"{what} asks to wait" if status == 429 else f"{what} is busy")
            request.wait(pause)
            request.notice("")
    raise AssertionError("attempts is 1 or more")


def status_of(error: BaseException) -> int | None:
    """Read the HTTP status of a client's error.

    Parameters
    ----------
    error : exception

    Returns
    -------
    int or None
        None where no server answered.
    """
    for holder in (getattr(error, "response", None), error):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value <= 599:
                return value
    if callable(ask := getattr(error, "get_http_status_code", None)):  # MLflow's
        return int(ask())
    return None


def retry_after(error: BaseException, now: datetime) -> float | None:
    """Read the seconds that a server asks to wait for, from `Retry-After`.

    Parameters
    ----------
    error : exception
    now : datetime
        Aware.

    Returns
    -------
    float or None
        None where it asks for nothing.
    """
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or getattr(error, "headers", None)
    try:
        text = str(headers.get("Retry-After") or headers.get("retry-after") or "")
    except AttributeError:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now.timestamp())


def _is_network(error: BaseException) -> bool:
    """Whether a connection failed, whichever library made it. A client may have wrapped it."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None:
            return False
        names = {kind.__name__ for kind in type(cause).__mro__}
        if isinstance(cause, (OSError, TimeoutError)) or names & {"TransportError", "ConnectionError", "HTTPError"}:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _is_no_json(error: BaseException) -> bool:
    return any(kind.__name__ == "JSONDecodeError" for kind in type(error).__mro__)


def _reason(error: BaseException, status: int | None) -> str:
    body = getattr(error, "body", None)  # langfuse's errors have the headers in their text
    text = " ".join(str(error if body is None else body).split())[:300]
    return f"it answered {status} ({text})" if status is not None else f"{type(error).__name__}: {text}"


def _remedy(status: int) -> str:
    return "; check its key in the environment" if status in (401, 403) else ""

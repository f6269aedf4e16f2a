"""URLs in messages: shown without what opens a door, and their secrets taken out of other people's messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, unquote

HIDDEN = "***"
# Of a database's URL, what is safe to show of its query; of other URLs nothing is: a key there may be a signature.
HARMLESS = {"application_name", "connect_timeout", "dbname", "host", "mode", "port", "sslmode", "user"}
DATABASES = ("postgres", "mysql", "mariadb", "oracle", "mssql", "sqlite")
SHORTEST = 3  # a shorter secret stands in too many words to be taken out of a text
_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]+:/*)?(?P<rest>.*)", re.DOTALL)


def redact(url: str) -> str:
    """Show a URL, or what somebody meant for one, without password, token and secret parameters.

    Of a database the user's name stays, and what is harmless in the query.
    """
    scheme, who, place, query = _split(url)
    if not scheme.startswith(DATABASES):
        return f"{scheme}{place}"
    name, colon, _ = who.partition(":")
    shown = f"{name}{f':{HIDDEN}' if colon else ''}@" if who else ""
    pairs = [(key, value if key.lower() in HARMLESS else HIDDEN) for key, value in _pairs(query)]
    return f"{scheme}{shown}{place}" + ("?" + "&".join(f"{key}={value}" for key, value in pairs) if pairs else "")


def scrub(text: str, urls: Iterable[str], secrets: Iterable[str] = ()) -> str:
    """Hide the secrets of these URLs, and these secrets, in a text that another program wrote."""
    hidden = {secret for url in urls for secret in _secrets_of(url)} | set(secrets)
    for secret in sorted(hidden, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def _split(url: str) -> tuple[str, str, str, str]:
    """Scheme, user and password, place, query. Signs that a URL should have encoded are looked for in the password."""
    match = _URL.fullmatch(url)
    assert match is not None
    scheme, rest = match["scheme"] or "", match["rest"]
    who = ""
    if not scheme and not re.search(r":[^/\\]*@", rest):
        return "", "", rest, ""  # a path
    is_file = scheme.startswith("sqlite") and ":///" in scheme
    if "@" in rest and not is_file:
        before, _, _ = rest.partition("?")
        first = before.partition("/")[0]
        # A password may hold /, ? and @ where nobody encoded them: then all to the last @ belongs to it.
        is_odd = not first.partition("@")[0].partition(":")[2].isdigit() and ":" in first.partition("@")[0]
        if is_odd or scheme.startswith(DATABASES) or not scheme:
            who, _, rest = rest.rpartition("@")
        elif "@" in first:
            who, _, rest = rest.partition("@")
    place, _, query = rest.partition("?")
    if not is_file:
        place = place.partition("#")[0]
    return scheme, who, place, query


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _secrets_of(url: str) -> Iterator[str]:
    scheme, who, _, query = _split(url)
    name, colon, password = who.partition(":")
    hidden = [password] if colon else [] if scheme.startswith(DATABASES) else [name]
    hidden += [value for key, value in _pairs(query) if key.lower() not in HARMLESS]
    for secret in filter(None, hidden):
        yield secret
        yield unquote(secret)

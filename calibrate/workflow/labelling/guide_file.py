"""A labelling guide as a TOML file: the guidelines, and the kinds of error in the order of their digits."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrate.errors import BadInput
from calibrate.types import Guide, Kind

MOST_KINDS = 9  # each is chosen by a digit
MOST_BYTES = 1 << 20
LONGEST = {"key": 40, "name": 40, "meaning": 300}
LONGEST_TEXT = 20_000
_KEY = re.compile(r"[a-z][a-z_]*")


def read(path: str) -> tuple[str, tuple[Kind, ...]]:
    """The guidelines and the kinds of a file. Raises BadInput."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise BadInput(f"the guide {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > MOST_BYTES:
        raise BadInput(f"the guide {path} has more than {MOST_BYTES:,} bytes: name another file, or shorten it")
    try:
        return parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"the guide {path} is no text in UTF-8: save it as UTF-8") from error
    except BadInput as error:
        raise BadInput(f"the guide {path}: {error}") from error


def parse(content: str) -> tuple[str, tuple[Kind, ...]]:
    """The guidelines and the kinds of a guide. Raises BadInput."""
    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"it is no TOML: {error}; `guidelines show` prints one to begin with") from error
    if unknown := sorted(set(document) - {"guidelines", "kinds"}):
        raise BadInput(f"it names {unknown[0]!r}; a guide has `guidelines`, a text, and `[[kinds]]`")
    entries = document.get("kinds", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput("`kinds` is no list of kinds: begin each with a line [[kinds]]")
    return check(document.get("guidelines", ""), [_kind(entry) for entry in entries])


def check(text: Any, kinds: Sequence[Kind]) -> tuple[str, tuple[Kind, ...]]:
    """The guidelines and the kinds, without blanks around them. Raises BadInput for what labellers could not work with:
    no guidelines, no kind or more than nine, a key that no label can hold, two kinds of one name."""
    if not isinstance(text, str) or not text.strip():
        raise BadInput("it has no `guidelines`: say in a text when an answer is clean, and when hallucinated")
    text = _newlines(text)
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"its guidelines have {len(text):,} characters: shorten them to {LONGEST_TEXT:,}")
    if not 1 <= len(kinds) <= MOST_KINDS:
        raise BadInput(f"it has {len(kinds)} kinds: give 1 to {MOST_KINDS}, as a digit chooses each")
    clean = [Kind(kind.key.strip(), kind.name.strip(), _newlines(kind.meaning)) for kind in kinds]
    for kind in clean:
        if not _KEY.fullmatch(kind.key):
            raise BadInput(f"the key {kind.key!r} of a kind is not made of a-z and _: write it like wrong_citation")
        for field, most in LONGEST.items():
            value = getattr(kind, field)
            if len(value) > most or (field != "meaning" and not value.isprintable()):
                raise BadInput(f"the {field} of {kind.key!r} is not text of at most {most} characters: shorten it")
        if not kind.name:
            raise BadInput(f"the kind {kind.key!r} has no name: give it one that labellers read")
    for field in ("key", "name"):
        values = [getattr(kind, field).casefold() for kind in clean]
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise BadInput(f"two kinds have the {field} {twice!r}: give each its own")
    return text, tuple(clean)


def write(guide: Guide) -> str:
    """A guide as the file that `read` takes."""
    return "\n".join(_lines(guide)) + "\n"


def _lines(guide: Guide) -> Iterator[str]:
    text = "\n".join(_escaped(line) for line in guide.text.split("\n"))
    yield f'guidelines = """\n{text}\n"""'
    for kind in guide.kinds:
        yield ""
        yield "[[kinds]]"
        for field in LONGEST:
            if value := getattr(kind, field):
                yield f'{field} = "{_escaped(value)}"'


def _escaped(text: str) -> str:
    """A text between quotes. TOML's escapes are those of JSON; it wants the DEL character escaped as well."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _kind(entry: dict[str, Any]) -> Kind:
    if unknown := sorted(set(entry) - set(LONGEST)):
        raise BadInput(f"a kind names {unknown[0]!r}; it has `key`, `name` and `meaning`")
    if wrong := next((name for name, value in entry.items() if not isinstance(value, str)), None):
        raise BadInput(f"the {wrong} of a kind is {entry[wrong]!r}, no text: put it into quotes")
    key = entry.get("key", "")
    return Kind(key, entry.get("name", key.replace("_", " ").capitalize()), entry.get("meaning", ""))

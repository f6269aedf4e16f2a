"""Who finds what is to be replaced: the built-in patterns, presidio, or a function of the user's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from calibrate.errors import BadInput
from calibrate.redaction.patterns import PATTERNS, Place

NAMES = (*PATTERNS, "presidio")
WORDS = {"email": "e-mail"}  # what a placeholder calls a kind, where that is not its name


class Finding(NamedTuple):
    """text[start:end] is personal data or a secret; `kind` names it in the placeholder, `[kind 1]`."""

    start: int
    end: int
    kind: str


Find: TypeAlias = Callable[[str], Iterable[tuple[int, int, str]]]
"""A function that finds (start, end, kind) in a text, in code points. The same text must always give the same."""


def finder_of(name: str) -> Find:
    """The finder of this name: a built-in kind, `presidio`, or `module:function`.

    Raises BadInput for a name that there is not, and Unavailable where what it needs is not installed.
    """
    if name in PATTERNS:
        return _of_pattern(PATTERNS[name], WORDS.get(name, name))
    if name == "presidio":
        from calibrate.redaction.presidio import make_finder

        return make_finder()
    if ":" in name:
        return _load(name)
    raise BadInput(f"nothing is called {name[:60]!r} to redact: there are {', '.join(NAMES)} and module:function")


def _of_pattern(find: Callable[[str], Iterable[Place]], word: str) -> Find:
    def find_kind(text: str) -> Iterable[Finding]:
        return [Finding(start, end, word) for start, end in find(text)]

    return find_kind


def _load(name: str) -> Find:
    module, _, function = name.partition(":")
    try:
        find = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"the redaction hook {name[:100]!r} cannot be loaded: {error}; name it as module:function, with its folder "
            "in PYTHONPATH"
        ) from None
    if not callable(find):
        raise BadInput(
            f"the redaction hook {name[:100]!r} is no function: it takes a text, and gives (start, end, kind)"
        )

    def checked(text: str) -> Iterable[Finding]:
        places = []
        try:
            given = list(find(text))
        except Exception as error:
            raise BadInput(
                f"the redaction hook {name[:100]!r} failed with {type(error).__name__}; nothing of this batch was "
                "stored"
            ) from error
        for place in given:
            try:
                start, end, kind = place
                usable = 0 <= start <= end <= len(text) and isinstance(kind, str) and bool(kind.strip())
            except (TypeError, ValueError):
                usable = False
            if not usable:
                raise BadInput(
                    f"the redaction hook {name[:100]!r} gave {place!r:.80}: it must give (start, end, kind), a part of "
                    "the text and a word for it; nothing of this batch was stored"
                )
            places.append(Finding(start, end, kind))
        return places

    return checked

"""What a program hands over, looked at once: Python takes a setting or a field of any type, and fails much later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from threading import TIMEOUT_MAX
from typing import Any, Literal

from calibrate.errors import BadInput
from calibrate.types import Source, Token, Trace

Kind = Literal["count", "share", "wait", "pause"]

_NUMBERS: Mapping[Kind, tuple[str, Callable[[Any], bool]]] = {
    "count": ("a whole number, 1 or more", lambda value: isinstance(value, Integral) and int(value) >= 1),
    "share": ("a number above 0 and up to 1", lambda value: 0 < value <= 1),
    "wait": ("a number of seconds, 0 or more", lambda value: 0 <= value < TIMEOUT_MAX),
    "pause": ("a number of seconds above 0", lambda value: 0 < value < TIMEOUT_MAX),
}
_LISTS = (("sources", Source, "Source objects"), ("tokens", Token, "Token objects"), ("alternatives", str, "texts"))


def check_number(name: str, value: object, kind: Kind) -> None:
    """Raises BadInput, naming the setting, unless the value is a number of that kind."""
    what, good = _NUMBERS[kind]
    if isinstance(value, bool) or not isinstance(value, Real) or not good(value):
        raise BadInput(f"{name} cannot be {value!r}; it is {what}")


def fault(trace: object) -> str | None:
    """The first field of a wrong type: "answer is None; give a text". None for a trace that detectors can read."""
    if not isinstance(trace, Trace):
        return f"it is {kind_of(trace)}; give a calibrate.types.Trace"
    for name, value in (("answer", trace.answer), ("question", trace.question or ""), ("context", trace.context or "")):
        if not isinstance(value, str):
            return f"{name} is {kind_of(value)}; give a text"
    for name, kind, what in _LISTS:
        value = getattr(trace, name)
        if value is None and name != "alternatives":
            continue
        if isinstance(value, str) or not isinstance(value, Sequence):
            return f"{name} is {kind_of(value)}; give a list of {what}"
        for one in value:
            if not isinstance(one, kind):
                return f"{name} holds {kind_of(one)}; give a list of {what}"
    for source in trace.sources or ():
        if not isinstance(source.text, str):
            return f"the text of a source is {kind_of(source.text)}; give a text"
    return None if isinstance(trace.attributes, Mapping) else f"attributes is {kind_of(trace.attributes)}; give a dict"


def kind_of(value: object) -> str:
    """What a value is, in words."""
    name = type(value).__name__
    article = "an" if name[0] in "aeiou" else "a"
    return "None" if value is None else "a text" if isinstance(value, str) else f"{article} {name}"

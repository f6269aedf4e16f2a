"""Check settings and traces where they enter: Python accepts any type there and fails much later."""

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
    """Raise BadInput, naming the setting, unless the value is a number of this kind.

    Parameters
    ----------
    name : str
        Of the setting.
    value : object
        What somebody passed.
    kind : {"count", "share", "wait", "pause"}
        A whole number of 1 or more; above 0 and up to 1; seconds of 0 or more; seconds above 0.
    """
    expected, is_valid = _NUMBERS[kind]
    if isinstance(value, bool) or not isinstance(value, Real) or not is_valid(value):
        raise BadInput(f"{name} cannot be {value!r}; it is {expected}")


def find_fault(trace: object) -> str | None:
    """Find the first field of a wrong type in a trace.

    Parameters
    ----------
    trace : object
        What somebody passed as a trace.

    Returns
    -------
    str or None
        "answer is None; give a text". None if every type is right.
    """
    if not isinstance(trace, Trace):
        return f"it is {describe_type(trace)}; give a calibrate.types.Trace"
    for name, value in (("answer", trace.answer), ("question", trace.question or ""), ("context", trace.context or "")):
        if not isinstance(value, str):
            return f"{name} is {describe_type(value)}; give a text"
    for name, kind, expected in _LISTS:
        value = getattr(trace, name)
        if value is None and name != "alternatives":
            continue
        if isinstance(value, str) or not isinstance(value, Sequence):
            return f"{name} is {describe_type(value)}; give a list of {expected}"
        for item in value:
            if not isinstance(item, kind):
                return f"{name} holds {describe_type(item)}; give a list of {expected}"
    for source in trace.sources or ():
        if not isinstance(source.text, str):
            return f"the text of a source is {describe_type(source.text)}; give a text"
    return (
        None
        if isinstance(trace.attributes, Mapping)
        else f"attributes is {describe_type(trace.attributes)}; give a dict"
    )


def describe_type(value: object) -> str:
    """Name the type of a value for an error message.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
        "a text", "an int", "None".
    """
    name = type(value).__name__
    article = "an" if name[0] in "aeiou" else "a"
    return "None" if value is None else "a text" if isinstance(value, str) else f"{article} {name}"

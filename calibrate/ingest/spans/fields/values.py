"""Single values of a span: texts, JSON that a text may hold, keys flattened with an index."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def text_or_none(value: Any) -> str | None:
    """Return a text that is not blank, else None."""
    return value if isinstance(value, str) and value.strip() else None


def first_text(values: Mapping[str, Any], *keys: str) -> str | None:
    """Return the text of the first key that has one."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether a value is a list, or a tuple as the SDK has them."""
    return isinstance(value, (list, tuple))


def number_or_none(value: Any) -> float | None:
    """Read a finite number, also from text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def parse_json(value: Any) -> Any:
    """Parse a text that may be a JSON object or list.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
        What the text holds; the value itself if it is no text, or no JSON.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def parse_texts(value: Any) -> tuple[str, ...]:
    """Read the texts of a list that are not blank, JSON text or decoded."""
    decoded = parse_json(value)
    return tuple([text for text in decoded if text_or_none(text)]) if is_list(decoded) else ()


def unflatten(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Rebuild the objects of a flattened list: `prefix.0.name`, `prefix.1.name`, ….

    Parameters
    ----------
    attributes : mapping
        Of a span.
    prefix : str
        Without the last dot.

    Returns
    -------
    list of dict
        In the order of their index.
    """
    objects: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and key[len(prefix) : len(prefix) + 1] == ".":
            index, _, name = key[len(prefix) + 1 :].partition(".")
            if name and index.isascii() and index.isdecimal() and len(index) < 10:
                objects.setdefault(int(index), {})[name] = value
    return [objects[index] for index in sorted(objects)]

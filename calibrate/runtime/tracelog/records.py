"""An answer as one line of a trace file: what an import of that line makes of it, the workbench makes of it here."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.values import FieldError, utc

Record = dict[str, Any]
Redact = Callable[[Record], Record | None]
"""Changes a record before it leaves the program; None leaves it out."""

NAMES = ("trace_id", "timestamp", "model", "operation", "group")
"""The fields that are compared, and in which nothing is replaced by name of a kind."""

_NO_TEXT = ((bytes, int, float, list, tuple, Mapping), "a text")
_NO_NAME = ((bytes, bool, float, list, tuple, Mapping), "a text")
_NO_LIST = ((str, bytes, int, float, Mapping), "a list")
_NO_MAPPING = ((str, bytes, int, float, list, tuple), "a mapping")
WRONG: Mapping[str, tuple[tuple[type, ...], str]] = {
    "question": _NO_TEXT, "context": _NO_TEXT,
    "trace_id": _NO_NAME, "model": _NO_NAME, "operation": _NO_NAME, "group": _NO_NAME,
    "sources": ((str, bytes, int, float), "a list or a mapping"),
    "tokens": _NO_LIST, "alternatives": _NO_LIST,
    "attributes": _NO_MAPPING,
}  # fmt: skip
"""By field, the types that it never has, and what it is instead. Others, numpy's for instance, may still become it."""


def size_of(record: Record) -> int:
    """Estimate what a record takes in memory, without walking through all of it.

    Parameters
    ----------
    record : dict

    Returns
    -------
    int
        Characters of its long texts, and a little for the rest.
    """
    size = 500 + len(record["answer"]) + len(record.get("question") or "") + len(record.get("context") or "")
    sources = record.get("sources")
    if sources:
        for source in sources.values() if isinstance(sources, Mapping) else sources:
            text = source.get("text") if isinstance(source, Mapping) else getattr(source, "text", source)
            size += 100 + (len(text) if isinstance(text, str) else 0)
    for text in record.get("alternatives") or ():
        size += len(text) if isinstance(text, str) else 0
    return size + 200 * len(record.get("tokens") or ())


def check_shape(record: Record) -> None:
    """Refuse what an import would surely reject, as far as that is seen without walking through long fields.

    Parameters
    ----------
    record : dict

    Raises
    ------
    TypeError
        For a field of another type than it has.
    ValueError
        For a timestamp that is no time.
    """
    for name, (wrong, wanted) in WRONG.items():
        value = record.get(name)
        if isinstance(value, wrong):
            raise TypeError(f"{name} is of type {type(value).__name__}, not {wanted}")
    sources = record.get("sources")
    for source in sources.values() if isinstance(sources, Mapping) else sources or ():
        if source is None or isinstance(source, (bytes, int, float, list, tuple)):
            raise TypeError(f"a source is of type {type(source).__name__}, not a text, a Source or a mapping")
    timestamp = record.get("timestamp")
    if isinstance(timestamp, (str, int, float)):
        try:
            utc(timestamp)
        except FieldError:
            raise ValueError("timestamp is no time: ISO 8601, or seconds since 1970") from None


def to_line(record: Record) -> str:
    """Write a record as JSON.

    Parameters
    ----------
    record : dict

    Returns
    -------
    str
        ASCII, so that every database takes it: a NUL and half a surrogate pair are escaped.

    Raises
    ------
    ValueError
        For a number that JSON does not have, and a record within itself.
    TypeError
        For a value that JSON does not have.
    """
    return json.dumps(record, default=_plain, allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: part for name, part in dataclasses.asdict(value).items() if part is not None}
    if hasattr(value, "tolist"):  # numpy's
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def redaction(redact: Redact | str | None) -> Redact | None:
    """Make of the names of kinds what replaces them.

    Parameters
    ----------
    redact : callable, str or None
        A function of the program's own, or names as TOUCHSTONE_REDACT has them: "email,phone,card,key".

    Returns
    -------
    callable or None
        None where nothing is replaced.

    Raises
    ------
    BadInput
        For a name that there is not, and for what is neither.
    """
    if redact is None or callable(redact):
        return redact
    if not isinstance(redact, str):
        raise BadInput(f"redact cannot be {redact!r}; give names like 'email,phone', or a function of a record")
    from calibrate.redaction import redactor_of

    redactor = redactor_of(redact)
    if redactor is None:
        return None

    def replace(record: Record) -> Record:
        texts = {name: value for name, value in json.loads(to_line(record)).items() if name not in NAMES}
        redacted: Record = redactor.redact_value(texts)
        if redacted["answer"] != texts["answer"]:  # its tokens would spell out what was replaced
            redacted.pop("tokens", None)
        return {name: record[name] for name in NAMES if name in record} | redacted

    return replace

"""Read the objects of a data set: whatever cannot be used is rejected by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.files import InputFile
from calibrate.ingest.json_document import json_objects
from calibrate.ingest.values import FieldError, expected


def rows_of(
    file: InputFile, columns: Mapping[str, str], title: str, read: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
) -> Iterator[Row | Rejected]:
    """Read every object of the file with `read`, which returns the fields of its traces or raises FieldError.

    All traces of an object come, or none. Raises BadInput for a mapping: the fields of a data set have their places.
    """
    if columns:
        raise BadInput(f"{file.name} is {title}, whose fields have their places: leave the columns out")
    for item in json_objects(file):
        if isinstance(item, Rejected):
            yield item
            continue
        try:
            traces = list(read(item.fields))
        except FieldError as error:
            yield Rejected(item.line, str(error))
            continue
        except RecursionError:
            yield Rejected(item.line, "not usable JSON: it is nested too deeply")
            continue
        for fields in traces:
            yield Row(item.line, fields, item.size // len(traces), item.repaired)


def text(fields: Mapping[str, Any], name: str) -> str:
    """The text of a field. Raises FieldError where it is none."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise expected(name, "text", value)
    return value


def objects(fields: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list; none where the field is missing. Raises FieldError for anything else."""
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise expected(name, "a list of objects", value)
    return value


def texts(fields: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a list; none where the field is missing. Raises FieldError for anything else."""
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise expected(name, "a list of texts", value)
    return value

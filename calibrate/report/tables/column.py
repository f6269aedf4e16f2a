"""A column of a table, and the ways to write it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from calibrate.report.numbers import UNKNOWN, count, decimal_interval, decimals, interval, number, share
from calibrate.sanitize import cell
from calibrate.types import Interval

Row = TypeVar("Row")
NOTHING = "–"


class Form(StrEnum):
    """What a column's values are, and so how they are written."""

    TEXT = "text"
    COUNT = "count"
    SHARE = "share"  # 0 to 1
    DIGITS = "digits"  # two significant ones
    AMOUNT = "amount"  # dollars
    FLAG = "flag"  # yes or no
    P_VALUE = "p value"
    SHARE_FIGURE = "share figure"  # an Interval of a share
    FIGURE = "figure"  # an Interval of a figure without unit


FIGURES = (Form.SHARE_FIGURE, Form.FIGURE)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column: `value` takes it from a row, None where it is not known. `key` names it in files and JSON, `heading`
    for people; `width` in pixels on a page, `bounds_width` that of its interval; `places` are a figure's decimals."""

    key: str
    heading: str
    value: Callable[[Row], Any]
    form: Form = Form.TEXT
    help: str = ""
    width: int | None = None
    bounds_width: int | None = None
    places: int = 2

    @property
    def is_number(self) -> bool:
        return self.form not in (Form.TEXT, Form.FLAG)

    def text(self, row: Row) -> str:
        """Write the cell for people: "71% (58–81%)"."""
        value = self.value(row)
        if value is None or value == "":
            return NOTHING
        if self.form in FIGURES:
            return self._figure(value)
        written = _TEXTS[self.form](value)
        return NOTHING if written == UNKNOWN else written

    def bounds(self, row: Row) -> str | None:
        """Write the interval of a figure; None where there is none."""
        figure: Interval | None = self.value(row)
        return None if figure is None or figure.low is None else self._bounds(figure)

    def _figure(self, figure: Interval) -> str:
        if figure.value is None:
            return NOTHING
        value = share(figure.value) if self.form == Form.SHARE_FIGURE else decimals(figure.value, self.places)
        return f"{value} ({self._bounds(figure)})"

    def _bounds(self, figure: Interval) -> str:
        if self.form == Form.SHARE_FIGURE:
            return interval(figure.low, figure.high)
        return decimal_interval(figure.low, figure.high, self.places)


_TEXTS: dict[Form, Callable[[Any], str]] = {
    Form.TEXT: str,
    Form.COUNT: count,
    Form.SHARE: share,
    Form.DIGITS: lambda value: number(value, 2),
    Form.AMOUNT: lambda value: decimals(value, 2),
    Form.FLAG: lambda value: "yes" if value else "no",
    Form.P_VALUE: lambda value: "under 0.001" if value < 0.001 else decimals(value),
}


def cells(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Write a table for the terminal, its headings first."""
    return [tuple(column.heading for column in columns), *(tuple(c.text(row) for c in columns) for row in rows)]


def right(columns: Sequence[Column[Row]]) -> list[int]:
    """The places of the columns that are set to the right."""
    return [place for place, column in enumerate(columns) if column.is_number]


def record(columns: Sequence[Column[Row]], row: Row) -> dict[str, Any]:
    """A row as plain values by key; a figure takes three keys, with its bounds as `_low` and `_high`."""
    values: dict[str, Any] = {}
    for column in columns:
        value = column.value(row)
        if column.form in FIGURES:
            figure = value or Interval(None)
            value, bounds = figure.value, {f"{column.key}_low": figure.low, f"{column.key}_high": figure.high}
            values |= {column.key: value, **bounds}
        else:
            values[column.key] = value
    return values


def as_csv(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> str:
    """Write a table for a spreadsheet; a text that it would run as a formula is kept from that."""
    file = io.StringIO()
    writer = csv.writer(file)
    records = [record(columns, row) for row in rows]
    writer.writerow(records[0] if records else [column.key for column in columns[:1]])
    writer.writerows([[cell(value) for value in values.values()] for values in records])
    return file.getvalue()

"""Tables of report as a page shows them: sortable numbers, quieter intervals, a help for each heading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from calibrate.report.tables.column import FIGURES, Column, Form
from pages.components.charts import GREY
from pages.components.text import visible

Row = TypeVar("Row")
TEXT_WIDTH = 300  # characters
SHORT = 9  # characters of a heading that its interval's repeats
_FORMATS = {
    Form.COUNT: "localized",
    Form.SHARE: "percent",
    Form.SHARE_FIGURE: "percent",
    Form.DIGITS: "%.2g",
    Form.AMOUNT: "%.2f",
    Form.P_VALUE: "%.3f",
}


SIDEWAYS = """<p class="sideways">The table goes on to the right: scroll it sideways.</p><style>
.sideways {font-size: .875rem; opacity: .7; margin: -.75rem 0 0}
@media (min-width: 900px) {[data-testid="stElementContainer"]:has(> * .sideways) {display: none}}
</style>"""


def show_wide(columns: Sequence[Column[Row]], rows: Iterable[Row], **options: Any) -> None:
    """Show a table of more columns than a phone holds, which has a line that says so."""
    st.dataframe(
        frame(columns, rows),
        hide_index=True,
        placeholder="–",
        column_config=config(columns),
        width="stretch",
        **options,
    )
    st.html(SIDEWAYS)


def frame(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Any:
    """The rows for `st.dataframe`; a figure takes two columns, its value and its 95% interval."""
    intervals = [_bounds_key(column) for column in columns if column.form in FIGURES]
    table = pd.DataFrame([_cells(columns, row) for row in rows], columns=list(config(columns)))
    return table.style.set_properties(subset=intervals, **{"color": GREY})


def config(columns: Sequence[Column[Row]]) -> dict[str, Any]:
    """The settings of the columns for `st.dataframe`."""
    settings: dict[str, Any] = {}
    for column in columns:
        settings[column.heading] = _setting(column)
        if column.form in FIGURES:
            named = _bounds_key(column) if len(column.heading) <= SHORT else "95%"
            settings[_bounds_key(column)] = st.column_config.TextColumn(
                named, width=column.bounds_width, help=f"95% interval: {column.heading}"
            )
    return settings


def _cells(columns: Sequence[Column[Row]], row: Row) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for column in columns:
        value = column.value(row)
        if column.form in FIGURES:
            cells[_bounds_key(column)] = column.bounds(row)
            value = None if value is None else value.value
        if isinstance(value, str):
            value = visible(value, TEXT_WIDTH)
        # Whole percents: more digits than labels can tell are noise.
        shares = column.form in (Form.SHARE, Form.SHARE_FIGURE)
        cells[column.heading] = round(value, 2) if shares and value is not None else value
    return cells


def _bounds_key(column: Column[Row]) -> str:
    return f"{column.heading} 95%"


def _setting(column: Column[Row]) -> Any:
    about = column.help or None
    if column.form == Form.FLAG:
        return st.column_config.CheckboxColumn(column.heading, width=column.width, help=about)
    if column.form == Form.TEXT:
        return st.column_config.TextColumn(column.heading, width=column.width, help=about)
    written = f"%.{column.places}f" if column.form == Form.FIGURE else _FORMATS[column.form]
    return st.column_config.NumberColumn(column.heading, width=column.width, format=written, help=about)

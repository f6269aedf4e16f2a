"""The versions of the labelling guide, and what each changed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.report.sentences.labelling import guides as sentences
from calibrate.report.tables.guides import COLUMNS
from calibrate.types import Guide
from calibrate.workflow.labelling import guide_changes
from pages.components import tables
from pages.components.text import plain


def show(versions: Sequence[Guide]) -> None:
    """A row for each version, newest first, and the changes of one of them."""
    st.dataframe(tables.frame(COLUMNS, versions), hide_index=True, column_config=tables.config(COLUMNS))
    by_number = {guide.version: guide for guide in versions}
    chosen = st.selectbox(
        "What changed in", [number for number in by_number if number], format_func=lambda n: f"Version {n}", width=220
    )
    changes = guide_changes.changes(by_number[chosen - 1], by_number[chosen])
    for line in sentences.kinds_changed(changes):
        st.markdown(f"- {plain(line)}")
    if changes.lines:
        st.code("\n".join(sign + line for sign, line in changes.lines), language="diff", wrap_lines=True)

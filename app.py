"""The shell. `streamlit run app.py`, or `make app`, which sets everything up first."""

from __future__ import annotations

import pandas  # noqa: F401  # plotly takes it half imported where another session is importing it
import streamlit as st

from pages.shell.navigation import all_pages

st.set_page_config(page_title="Touchstone", page_icon="⚖️", layout="wide")
st.navigation(all_pages(), position="top").run()

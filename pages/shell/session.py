"""What time it is, and what a session keeps across pages."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st


def now() -> datetime:
    return datetime.now(UTC)


def restore(key: str) -> None:
    """Put back what was typed into the widget of this key: Streamlit forgets it while another page is shown."""
    state = st.session_state
    if key not in state and (copy := f"kept_{key}") in state:
        state[key] = state[copy]


def keep(key: str) -> None:
    """Remember what the widget of this key holds, for `restore`."""
    st.session_state[f"kept_{key}"] = st.session_state[key]

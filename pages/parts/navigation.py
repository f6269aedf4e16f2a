"""The pages in the order of the loop, and the one way to link to them."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

# key: (script, title, icon, address)
_PAGES = {
    "week": ("pages/week/home.py", "This week", ":material/home:", "week"),
    "import": ("pages/traces/importing.py", "Import", ":material/upload:", "import"),
    "traces": ("pages/traces/browse.py", "Traces", ":material/list:", "traces"),
    "sample": ("pages/sample/draw.py", "Sample", ":material/casino:", "sample"),
    "label": ("pages/label/label.py", "Label", ":material/check_box:", "label"),
    "detect": ("pages/detect/detect.py", "Detect", ":material/play_circle:", "detect"),
    "detectors": ("pages/detect/detectors.py", "Detectors", ":material/sensors:", "detectors"),
    "tune": ("pages/tune/tune.py", "Tune", ":material/tune:", "tune"),
    "release": ("pages/release/release.py", "Release", ":material/verified:", "release"),
}


def all_pages() -> list[StreamlitPage]:
    """The pages for st.navigation, made anew for every session."""
    return [page(key) for key in _PAGES]


def page(key: str) -> StreamlitPage:
    """A page by its key, for st.page_link and st.switch_page."""
    script, title, icon, address = _PAGES[key]
    return st.Page(script, title=title, icon=icon, url_path=address, default=key == "week")

"""The pages in the order of the loop, and the one way to link to them."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

# section: {key: (script, title, icon, address)}. Pages of the section without a name stand in the bar themselves.
_SECTIONS = {
    "": {"week": ("pages/week/home.py", "This week", ":material/home:", "week")},
    "Traces": {
        "import": ("pages/traces/importing.py", "Import", ":material/upload:", "import"),
        "traces": ("pages/traces/browse.py", "Traces", ":material/list:", "traces"),
    },
    "Label": {
        "sample": ("pages/sample/draw.py", "Sample", ":material/casino:", "sample"),
        "label": ("pages/label/label.py", "Label", ":material/check_box:", "label"),
        "agreement": ("pages/label/agreement.py", "Agreement", ":material/group:", "agreement"),
    },
    "Detect": {
        "detect": ("pages/detect/detect.py", "Detect", ":material/play_circle:", "detect"),
        "detectors": ("pages/detect/detectors.py", "Detectors", ":material/sensors:", "detectors"),
    },
    "Tune": {
        "tune": ("pages/tune/tune.py", "Tune", ":material/tune:", "tune"),
        "compare": ("pages/tune/compare.py", "Compare", ":material/compare_arrows:", "compare"),
        "ensemble": ("pages/tune/ensemble.py", "Ensemble", ":material/join:", "ensemble"),
        "scoreboard": ("pages/tune/scoreboard.py", "Scoreboard", ":material/leaderboard:", "scoreboard"),
    },
    "Release": {
        "release": ("pages/release/release.py", "Release", ":material/verified:", "release"),
    },
    "Watch": {
        "models": ("pages/watch/models.py", "Models", ":material/neurology:", "models"),
        "drift": ("pages/watch/drift.py", "Drift", ":material/show_chart:", "drift"),
        "recheck": ("pages/watch/recheck.py", "Recheck", ":material/fact_check:", "recheck"),
        "recalibrate": ("pages/watch/recalibrate.py", "Recalibrate", ":material/autorenew:", "recalibrate"),
    },
}
_PAGES = {key: place for pages in _SECTIONS.values() for key, place in pages.items()}


def all_pages() -> dict[str, list[StreamlitPage]]:
    """The pages for st.navigation by section, made anew for every session."""
    return {section: [page(key) for key in pages] for section, pages in _SECTIONS.items()}


def page(key: str) -> StreamlitPage:
    """A page by its key, for st.page_link and st.switch_page."""
    script, title, icon, address = _PAGES[key]
    return st.Page(script, title=title, icon=icon, url_path=address, default=key == "week")

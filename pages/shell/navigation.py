"""The pages in the order of the loop, and the one way to link to them."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

# section: {key: (script, title, icon, address)}. Pages of the section without a name stand in the bar themselves.
_SECTIONS = {
    "": {"week": ("pages/week/page.py", "This week", ":material/home:", "week")},
    "Traces": {
        "import": ("pages/traces/import_page.py", "Import", ":material/upload:", "import"),
        "traces": ("pages/traces/browse_page.py", "Traces", ":material/list:", "traces"),
    },
    "Label": {
        "sample": ("pages/label/draw_page.py", "Sample", ":material/casino:", "sample"),
        "label": ("pages/label/label_page.py", "Label", ":material/check_box:", "label"),
        "agreement": ("pages/label/agreement_page.py", "Agreement", ":material/group:", "agreement"),
    },
    "Detect": {
        "detect": ("pages/detect/detect_page.py", "Detect", ":material/play_circle:", "detect"),
        "detectors": ("pages/detect/detectors_page.py", "Detectors", ":material/sensors:", "detectors"),
    },
    "Tune": {
        "tune": ("pages/thresholds/tune_page.py", "Tune", ":material/tune:", "tune"),
        "compare": ("pages/thresholds/compare_page.py", "Compare", ":material/compare_arrows:", "compare"),
        "ensemble": ("pages/thresholds/ensemble_page.py", "Ensemble", ":material/join:", "ensemble"),
        "scoreboard": ("pages/thresholds/scoreboard_page.py", "Scoreboard", ":material/leaderboard:", "scoreboard"),
    },
    "Release": {
        "release": ("pages/release/page.py", "Release", ":material/verified:", "release"),
    },
    "Watch": {
        "models": ("pages/watch/models_page.py", "Models", ":material/neurology:", "models"),
        "drift": ("pages/watch/drift_page.py", "Drift", ":material/show_chart:", "drift"),
        "recheck": ("pages/watch/recheck_page.py", "Recheck", ":material/fact_check:", "recheck"),
        "recalibrate": ("pages/watch/recalibrate_page.py", "Recalibrate", ":material/autorenew:", "recalibrate"),
    },
}
_PAGES = {key: place for pages in _SECTIONS.values() for key, place in pages.items()}


def all_pages() -> dict[str, list[StreamlitPage]]:
    """The pages by section, for st.navigation. Every session needs its own."""
    return {section: [page(key) for key in pages] for section, pages in _SECTIONS.items()}


def page(key: str) -> StreamlitPage:
    """A page by its key, for st.page_link and st.switch_page."""
    script, title, icon, address = _PAGES[key]
    return st.Page(script, title=title, icon=icon, url_path=address, default=key == "week")

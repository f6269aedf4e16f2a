"""The pages in the order of the loop, and the one way to link to them."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from pages.shell import identity

ROOT = Path(__file__).parents[2]
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
        "audit": ("pages/release/audit_page.py", "Who did what", ":material/history:", "audit"),
    },
    "Watch": {
        "models": ("pages/watch/models_page.py", "Models", ":material/neurology:", "models"),
        "drift": ("pages/watch/drift_page.py", "Drift", ":material/show_chart:", "drift"),
        "recheck": ("pages/watch/recheck_page.py", "Recheck", ":material/fact_check:", "recheck"),
        "recalibrate": ("pages/watch/recalibrate_page.py", "Recalibrate", ":material/autorenew:", "recalibrate"),
    },
}
_PAGES = {key: place for pages in _SECTIONS.values() for key, place in pages.items()}


_CLOSED = ROOT / "pages" / "shell" / "closed.py"  # stands for every page that a person's roles do not open


def all_pages() -> dict[str, list[StreamlitPage]]:
    """The pages by section, for st.navigation. Every session needs its own. Those that the person's roles do not open
    are there without their scripts, so that an address or a message that asks for one comes to nothing."""
    sections = {section: [page(key) for key in pages] for section, pages in _SECTIONS.items()}
    if identity.signs_in():
        sections[""].append(
            st.Page(ROOT / "pages" / "shell" / "sign_out.py", title="Sign out", icon=":material/logout:")
        )
    return sections


def page(key: str) -> StreamlitPage:
    """A page by its key, for st.page_link and st.switch_page."""
    script, title, icon, address = _PAGES[key]
    if not identity.may_open(key):
        return st.Page(_CLOSED, title=title, icon=icon, url_path=address, visibility="hidden")
    return st.Page(ROOT / script, title=title, icon=icon, url_path=address, default=key == "week")


def closed(chosen: StreamlitPage) -> str | None:
    """The title of a page that the person's roles do not open; None where they do."""
    titles = {address: (key, title) for key, (_, title, _, address) in _PAGES.items()}
    key, title = titles.get(chosen.url_path or "week", ("", ""))
    return title if key and not identity.may_open(key) else None

"""The pages in the order of the loop, and the one way to link to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shell import identity

ROOT = Path(__file__).parents[2]
# What the bar shows: {its word: {key of a tab: (script, the tab's name, icon)}}. The key is the page's address.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "This week": {"week": ("pages/week/page.py", "This week", ":material/home:")},
    "Traces": {
        "traces": ("pages/traces/browse_page.py", "Traces", ":material/list:"),
        "import": ("pages/traces/import_page.py", "Import", ":material/upload:"),
    },
    "Label": {
        "sample": ("pages/label/draw_page.py", "Draw", ":material/casino:"),
        "label": ("pages/label/label_page.py", "Queue", ":material/check_box:"),
        "agreement": ("pages/label/agreement_page.py", "Disputes", ":material/group:"),
        "guidelines": ("pages/label/guidelines_page.py", "Guidelines", ":material/menu_book:"),
    },
    "Detect": {
        "detect": ("pages/detect/detect_page.py", "Detect", ":material/play_circle:"),
        "detectors": ("pages/detect/detectors_page.py", "Detector", ":material/sensors:"),
    },
    "Thresholds": {
        "tune": ("pages/thresholds/tune_page.py", "Tune", ":material/tune:"),
        "ensemble": ("pages/thresholds/ensemble_page.py", "Combine", ":material/join:"),
    },
    "Release": {
        "release": ("pages/release/page.py", "Release", ":material/verified:"),
        "audit": ("pages/release/audit_page.py", "Who did what", ":material/history:"),
    },
    "Watch": {
        "watch": ("pages/watch/page.py", "Watch", ":material/show_chart:"),
        "recheck": ("pages/watch/recheck_page.py", "Recheck", ":material/fact_check:"),
        "recalibrate": ("pages/watch/recalibrate_page.py", "Recalibrate", ":material/autorenew:"),
    },
}
_PAGES = {key: place for tabs in SECTIONS.values() for key, place in tabs.items()}
_SECTION_OF = {key: section for section, tabs in SECTIONS.items() for key in tabs}
# Where a word of the bar leads, if its first tab is not what it is for.
_MAIN = {"Label": "label"}
# Other addresses that lead to a page.
_MOVED = {
    "week": "week", "thresholds": "tune", "models": "watch", "drift": "watch", "draw": "sample", "queue": "label",
    "disputes": "agreement", "compare": "tune", "scoreboard": "tune",
}  # fmt: skip
# Reached from a row of another page, by the palette and by address: shown as a tab only while one is there.
_BY_LINK = {"detectors", "recheck", "recalibrate"}
# What such an address opens there, beside what it says itself.
_OPENS = {name: {"details": name} for name in ("compare", "scoreboard", "models", "drift")}
_HOME = "home"  # Streamlit serves the default page at / and keeps this name for it
_CLOSED = ROOT / "pages" / "shell" / "closed.py"  # stands for every page whose script is not to be run
_SIGN_OUT = "sign_out"
_LOST = "lost_address"  # in the session: the address that it began with, which no page has


def all_pages() -> list[StreamlitPage]:
    """The pages, for st.navigation. Every session needs its own. Those that the person's roles do not open are there
    without their scripts, so that an address or a message that asks for one comes to nothing; so is the address that
    somebody came by, where no page has it."""
    pages = [page(key) for key in _PAGES]
    pages += [
        st.Page(_CLOSED, title="Touchstone", url_path=address, visibility="hidden")
        for address in _MOVED
    ]  # fmt: skip
    if identity.signs_in():
        pages.append(page(_SIGN_OUT))
    if lost := _lost():
        pages.append(st.Page(_CLOSED, title="No such page · Touchstone", url_path=lost, visibility="hidden"))
    return pages


def page(key: str) -> StreamlitPage:
    """A page by its key, for st.page_link and st.switch_page."""
    if key == _SIGN_OUT:
        return st.Page(ROOT / "pages" / "shell" / "sign_out.py", title="Sign out · Touchstone", url_path=key)
    script, _, icon = _PAGES[key]
    if not identity.may_open(key):
        return st.Page(_CLOSED, title=tab_title(key), icon=icon, url_path=key, visibility="hidden")
    address = _HOME if key == "week" else key
    return st.Page(ROOT / script, title=tab_title(key), icon=icon, url_path=address, default=key == "week")


def tab_title(key: str) -> str:
    """What the browser's tab says: "Thresholds · Touchstone", "Compare · Thresholds · Touchstone"."""
    section = _SECTION_OF[key]
    words = [section] if key == _main(section) else [_PAGES[key][1], section]
    return " · ".join([*words, "Touchstone"])


def key_of(chosen: StreamlitPage) -> str | None:
    """The key of a page that st.navigation has chosen; None for an address that is no page of the loop."""
    key = chosen.url_path or "week"
    return key if key in _PAGES and (chosen.url_path != "week") else None


def moved(chosen: StreamlitPage) -> str | None:
    """The key of the page that an address leads to which is not its own."""
    return _MOVED.get(chosen.url_path)


def opens(chosen: StreamlitPage) -> dict[str, str]:
    """What an address that leads elsewhere opens there."""
    return _OPENS.get(chosen.url_path, {})


def is_lost(chosen: StreamlitPage) -> bool:
    """Whether this stands for an address that no page has."""
    return chosen.url_path == st.session_state.get(_LOST)


def closed(key: str | None) -> str | None:
    """The name of a page that the person's roles do not open; None where they do."""
    return _PAGES[key][1] if key and not identity.may_open(key) else None


def name(key: str) -> str:
    return _PAGES[key][1]


def opened() -> dict[str, dict[str, str]]:
    """What the person's roles open: {word of the bar: {key of a tab: its name}}."""
    tabs = {
        section: {key: tab for key, (_, tab, _) in pages.items() if identity.may_open(key)}
        for section, pages in SECTIONS.items()
    }
    return {section: names for section, names in tabs.items() if names}


def entry(section: str, tabs: Mapping[str, str]) -> str:
    """The key of the page that a word of the bar leads to."""
    return _main(section) if _main(section) in tabs else next(iter(tabs))


def section_of(key: str | None) -> str:
    return _SECTION_OF.get(key or "", "")


def is_reached_by_link(key: str) -> bool:
    return key in _BY_LINK


def is_page(key: object) -> bool:
    return key in _PAGES or (key == _SIGN_OUT and identity.signs_in())


def address(key: str) -> str:
    """Relative to any other page."""
    return "./" if key == "week" else key


def _main(section: str) -> str:
    return _MAIN.get(section, next(iter(SECTIONS[section])))


def _lost() -> str | None:
    """The address that this session began with, if no page has it: Streamlit would say "Page not found"."""
    context = get_script_run_ctx(suppress_warning=True)
    intended = context.pages_manager.intended_page_name if context else None
    addresses = {*_PAGES, *_MOVED, _HOME, _SIGN_OUT}
    if intended and "/" not in intended and intended not in addresses:
        st.session_state[_LOST] = intended
    return st.session_state.get(_LOST)

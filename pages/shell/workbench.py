"""What every page needs: the store, who is here, the sample at hand, and errors told in a sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import streamlit as st

from calibrate import settings
from calibrate.errors import TouchstoneError
from calibrate.types import Sample
from db import Store, open_store

log = logging.getLogger("touchstone")

# Streamlit leaves a hand's breadth empty above every page. The accent on its own tint is too faint to read in the dark.
_STYLE = """<style>
.stMainBlockContainer {padding-top: 4.5rem; padding-bottom: 3rem}
[data-testid=stButtonGroup] button[aria-checked=true] {color: inherit !important}
</style>"""


@st.cache_resource(show_spinner=False)
def _open(url: str) -> Store:
    return open_store(url)


def store() -> Store:
    """The one open store of this server. Stops the page with a sentence where it cannot be opened."""
    url = settings.read().store
    try:
        return _open(url)
    except TouchstoneError as error:
        st.error(f"**The store could not be opened.** {error}", icon=":material/database_off:")
        st.caption("Set TOUCHSTONE_STORE to another store and start the workbench again.")
        st.stop()


def user() -> str:
    """Who labels, chooses and releases: the name given on the label page, else the login name."""
    return str(st.session_state.get("user") or settings.read().user)


def now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def page(title: str, lead: str) -> Iterator[Store]:
    """The frame of a page: heading, one line that says what is done here, and no traceback whatever happens."""
    st.html(_STYLE)
    st.title(title, anchor=False)
    st.caption(lead)
    with guarded():
        yield store()


@contextmanager
def guarded() -> Iterator[None]:
    """Tells what went wrong in a sentence; what was not foreseen goes to the log, whole."""
    try:
        yield
    except TouchstoneError as error:
        problem(error)
    except Exception as error:
        # Streamlit steers its own script with exceptions derived from BaseException; those are not caught here.
        log.exception("a page failed")
        st.error(f"Something went wrong here ({type(error).__name__}). The log of the server has the details.")


def restore(key: str) -> None:
    """Puts back what was typed into the widget of this key, which is forgotten while another page is shown."""
    state = st.session_state
    if key not in state and (kept := f"kept_{key}") in state:
        state[key] = state[kept]


def keep(key: str) -> None:
    """Remembers what the widget of this key holds, for `restore`."""
    st.session_state[f"kept_{key}"] = st.session_state[key]


def problem(error: TouchstoneError) -> None:
    """An error as text: its message may quote a trace or a file, so it is not Markdown."""
    with st.container(border=True):
        st.markdown(":material/error: **This did not work**")
        st.text(str(error))


def choose_sample(found: Store, *, label: str = "Sample") -> Sample | None:
    """The sample at hand, chosen once and kept across pages and reloads (in the address). None: there is none yet."""
    samples = found.samples.list()
    if not samples:
        return None
    names = [sample.name for sample in samples]
    wanted = st.query_params.get("sample") or st.session_state.get("sample_at_hand")
    # Unless one is named, the newest in which a trace has no verdict yet, of anybody.
    open_ = (i for i, one in enumerate(samples) if sum(found.labels.gold_counts(one.id).values()) < one.size)
    index = names.index(wanted) if wanted in names else next(open_, 0)
    name = st.selectbox(label, names, index=index, format_func=lambda n: _title(samples[names.index(n)]))
    st.session_state["sample_at_hand"] = name
    if wanted != name or st.query_params.get("sample"):
        st.query_params["sample"] = name
    return samples[names.index(name)]


def _title(sample: Sample) -> str:
    return f"{sample.name} · {sample.size} traces · {sample.design.replace('-', ' ')}"

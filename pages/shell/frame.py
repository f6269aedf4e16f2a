"""What stands around every page: its heading, the open store, and errors shown as a sentence."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import streamlit as st

from calibrate import settings
from calibrate.errors import Forbidden, StoreReplaced, TouchstoneError
from calibrate.report.sentences.traces.store import exposed
from db import Store, open_store

log = logging.getLogger("touchstone")

# Streamlit leaves much space above every page, and room for a header that is empty here: what it says there (that it
# works, that the server is gone) goes to the lower corner. Its accent on its own tint is too faint to read on a dark
# page, and so are its captions on any. A finger needs 44 px.
_STYLE = """<style>
.stMainBlockContainer {padding: 2.5rem var(--gutter) 3rem; --gutter: clamp(1rem, 4vw, 4rem)}
.stMainBlockContainer:has(.ts-bar) {padding-top: 0}
.stMainBlockContainer {overflow-x: clip}
.stHeading h1 {font-size: 1.6rem; padding: 0.25rem 0}
.stAppHeader {top: auto; bottom: 0; left: auto; right: 0; width: auto; background: none; pointer-events: none}
.stAppHeader > * > * {pointer-events: auto}
[data-testid=stCaptionContainer] {opacity: 0.75}
[data-testid=stButtonGroup] button[aria-checked=true] {color: inherit !important}
@media (pointer: coarse) {
  .stMain :is(button, input, summary, [role=tab], [data-baseweb=select] > div) {min-height: 2.75rem}
  .stMain [data-testid=stNumberInputContainer] {min-height: 2.75rem}
  .stMain :is(button, summary) {min-width: 2.75rem}
  .stMain label:has(input) {min-height: 2.75rem; align-items: center}
  .stMain [role=radiogroup] > label {min-height: 2.75rem; align-items: center}
}
</style>"""


@st.cache_resource(show_spinner=False)
def _open(url: str) -> Store:
    store = open_store(url)
    if store.file is not None and store.exposed is not None:
        log.warning(exposed(store.file, store.exposed))
    return store


def opened() -> Store:
    """The one open store of this server. Raises BadInput or StoreError where it cannot be opened."""
    return _open(settings.read().store)


def store() -> Store:
    """The one open store of this server. Stops the page with an error if it cannot be opened."""
    try:
        return opened()
    except TouchstoneError as error:
        st.error("**The store could not be opened.**", icon=":material/database_off:")
        st.text(settings.hide_secrets(str(error)))
        st.caption("Set TOUCHSTONE_STORE to another store and start the workbench again.")
        st.stop()


def show_style() -> None:
    st.html(_STYLE)


def show_title(title: str, lead: str | None = None) -> None:
    st.title(title, anchor=False, help=lead)


@contextmanager
def page_frame(title: str, lead: str) -> Iterator[Store]:
    """A page's heading, with what it is for behind a question mark. Whatever fails inside is shown without a
    traceback."""
    show_title(title, lead)
    with guarded():
        yield store()


@contextmanager
def guarded() -> Iterator[None]:
    """Show an expected error as a sentence; write an unexpected one to the log in full."""
    try:
        yield
    except TouchstoneError as error:
        note_refusal(error)
        show_error(error)
    except Exception as error:
        # Streamlit steers its own script with exceptions derived from BaseException; those are not caught here.
        _log("a page failed")
        st.error(f"Something went wrong here ({type(error).__name__}). The log of the server has the details.")


@contextmanager
def errors_kept(key: str) -> Iterator[None]:
    """Keep what goes wrong in a callback under this key, for `show_kept_error` on the page drawn next."""
    try:
        yield
    except TouchstoneError as error:
        note_refusal(error)
        st.session_state[key] = error
    except Exception:
        _log("a callback failed")
        st.session_state[key] = TouchstoneError(
            "This was not saved. Nothing is lost: press again. The log of the server has the details."
        )


def note_refusal(error: TouchstoneError) -> None:
    """Put into the audit log that somebody was refused what their roles do not allow."""
    if isinstance(error, Forbidden):
        with suppress(TouchstoneError):  # what is shown is the refusal
            store().audit.refused(str(error))


def show_kept_error(key: str) -> None:
    """Show what `errors_kept` kept, once."""
    if error := st.session_state.pop(key, None):
        show_error(error)


def show_error(error: TouchstoneError) -> None:
    """An error as plain text: its message may quote a trace or a file, so it is not Markdown."""
    with st.container(border=True):
        st.markdown(":material/error: **This did not work**")
        st.text(settings.hide_secrets(str(error)))
        if isinstance(error, StoreReplaced) and error.reopen:
            st.button("Open the store that is there now", key="reopen_store", on_click=_open.clear)
    if isinstance(error, StoreReplaced):
        st.stop()  # whatever else the page would read fails in the same way


def _log(what: str) -> None:
    """Write the error at hand to the log in full, without the secrets that a library may have put into it."""
    log.error("%s\n%s", what, settings.hide_secrets(traceback.format_exc()))

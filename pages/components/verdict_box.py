"""The box that says whether something may go out, why, and what to do instead; with the reason to save it anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from calibrate.report.sentences.tuning import point_state
from calibrate.types import PointState, PointVerdict
from pages.components.text import plain

NO_REASON = "nothing was saved: say in the field beside the button why it shall be saved all the same"
# Colour, icon and words say the same: nobody needs to tell the colours apart.
_LOOK = {
    PointVerdict.HOLDS: ("holds", ":material/check_circle:", "#009E73"),
    PointVerdict.NOT_SHOWN: ("open", ":material/pending:", "#E69F00"),
    PointVerdict.DO_NOT_RELEASE: ("stop", ":material/block:", "#D55E00"),
}
# While the handle of the threshold chart moves it writes into the box what it will say (`data-moving`); what it offers
# follows where the handle rests.
_STYLE = (
    "".join(
        f"{box} {{border-left: 5px solid {colour}; background: color-mix(in srgb, {colour} 7%, transparent)}}"
        for name, _, colour in _LOOK.values()
        for box in (
            f'[class*="st-key-verdict-{name}"]:not([data-moving])',
            f'[class*="st-key-verdict-"][data-moving={name}]',
        )
    )
    + '[class*="st-key-verdict-"][data-moving] > :not(:first-child) {opacity: .45}'
)


def look(verdict: PointVerdict) -> tuple[str, str, str]:
    """The name of a state in style sheets, its icon and its colour."""
    return _LOOK[verdict]


@contextmanager
def verdict_box(state: PointState, *, key: str, head: Callable[[], None] | None = None) -> Iterator[None]:
    """A box with the state and why; what is drawn inside stands below. `head` draws its words where they follow
    something that moves."""
    name, icon, _ = _LOOK[state.verdict]
    st.html(f"<style>{_STYLE}</style>")
    with st.container(border=True, key=f"verdict-{name}-{key}", gap="small"):
        if head is not None:
            head()
        else:
            st.markdown(f"{icon} **{point_state.headline(state)}.** {plain(point_state.sentence(state), 500)}")
        yield


def save_anyway(save: Callable[..., None], args: tuple[object, ...], *, key: str, label: str) -> None:
    """Saving what is known to be bad, out of the way: a field for the reason, kept under `key`, and the button."""
    with st.popover(f"{label}…", type="tertiary", key=f"{key}-open"):
        st.text_input(
            "Reason to save it all the same",
            key=key,
            max_chars=300,
            placeholder="printed on Release, on This week and in the file",
        )
        st.button(label, icon=":material/bookmark_add:", on_click=save, args=args)

"""The box that says whether something may go out, why, and what to do instead; with the reason to save it anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from calibrate.report.sentences import point_state
from calibrate.types import PointState, PointVerdict
from pages.components.text import plain

NO_REASON = "nothing was saved: say in the field beside the button why it shall be saved all the same"
# Colour, icon and words say the same: nobody needs to tell the colours apart.
_LOOK = {
    PointVerdict.HOLDS: ("holds", ":material/check_circle:", "#0072B2"),
    PointVerdict.NOT_SHOWN: ("open", ":material/pending:", "#E69F00"),
    PointVerdict.DO_NOT_RELEASE: ("stop", ":material/block:", "#D55E00"),
}
# While the handle of the threshold chart moves it writes into the box what it will say (`data-moving`).
_STYLE = (
    "".join(
        f'[class*="st-key-verdict-{name}"] {{border-left: 4px solid {colour}}}' for name, _, colour in _LOOK.values()
    )
    + "".join(
        f'[class*="st-key-verdict-"][data-moving={name}] {{border-left: 4px solid {colour}}}'
        for name, _, colour in _LOOK.values()
    )
    + '[class*="st-key-verdict-"][data-moving] > * {opacity: .55}'
)


@contextmanager
def verdict_box(state: PointState, *, key: str, is_explained: bool = False) -> Iterator[None]:
    """A box with the state and why; what is drawn inside stands below. `is_explained`: the page says why already."""
    name, icon, _ = _LOOK[state.verdict]
    st.html(f"<style>{_STYLE}</style>")
    with st.container(border=True, key=f"verdict-{name}-{key}", gap="small"):
        why = "" if is_explained else plain(point_state.sentence(state), 500)
        st.markdown(f"{icon} **{point_state.headline(state)}.** {why}")
        yield


def save_anyway(save: Callable[..., None], args: tuple[object, ...], *, key: str, label: str) -> None:
    """A field for the reason, kept under `key`, and the button that saves with it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Reason to save it all the same",
            key=key,
            max_chars=300,
            placeholder="printed on Release, on This week and in the file",
        )
        st.button(label, icon=":material/bookmark_add:", on_click=save, args=args)

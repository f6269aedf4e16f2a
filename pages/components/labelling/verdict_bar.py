"""The verdict bar: five buttons with their keys, the kinds of error and a note. It never moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from calibrate.types import KINDS, Label, Verdict
from pages.components.labelling.trace_card import kind_in_words

_HERE = Path(__file__).parent
# One press answers one trace: held keys, and presses before the next trace is on the screen, are not counted.
_one_press = st.components.v2.component(
    "touchstone_one_press",
    css=(_HERE / "verdict_bar.css").read_text(encoding="utf-8"),
    js=(_HERE / "verdict_bar.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)

BUTTONS: tuple[tuple[Verdict, str, str], ...] = (
    ("clean", "Clean", "A"),
    ("hallucinated", "Hallucinated", "X"),
    ("unsure", "Unsure", "U"),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The kinds and the note that go with a verdict."""

    kinds: tuple[str, ...]
    note: str | None


def show(
    turn: int,
    *,
    before: Label | None,
    went_back: bool,
    can_go_back: bool,
    on_verdict: Callable[[int, Verdict], None],
    on_skip: Callable[[int], None],
    on_back: Callable[[int], None],
) -> None:
    """Draw the bar for this turn; the callbacks get the turn's number."""
    with st.container(horizontal=True, key="verdicts", vertical_alignment="center", gap="xsmall", wrap=False):
        for verdict, text, key in BUTTONS:
            st.button(
                text, key=verdict, shortcut=key, width="stretch", on_click=on_verdict, args=(turn, verdict), wrap=False
            )
        text = "Leave it" if went_back else "Skip"
        st.button(text, key="skip", shortcut="Space", type="tertiary", on_click=on_skip, args=(turn,), width=150)
        back(turn, can_go_back=can_go_back, on_back=on_back)
        if st.button("Keys", key="keys", shortcut="H", type="tertiary", width=90):
            _keys()
    with st.container(horizontal=True, key="aside", vertical_alignment="center", gap="small", wrap=False):
        st.pills(
            "Kinds of error, for a hallucinated answer",
            KINDS,
            selection_mode="multi",
            default=[kind for kind in before.kinds if kind in KINDS] if before else None,
            format_func=lambda kind: f"{kind_in_words(kind).capitalize()} :gray[{KINDS.index(kind) + 1}]",
            key=f"kinds-{turn}",
            on_change="ignore",
            label_visibility="collapsed",
        )
        st.text_input(
            "Note",
            value=(before.note or "") if before else "",
            key=f"note-{turn}",
            placeholder="Note (optional)",
            max_chars=2000,
            on_change="ignore",
            label_visibility="collapsed",
        )
    guard(was=before.verdict if before else None)


def back(turn: int, *, can_go_back: bool, on_back: Callable[[int], None]) -> None:
    st.button(
        "Back",
        key="back",
        shortcut="Backspace",
        type="tertiary",
        on_click=on_back,
        args=(turn,),
        disabled=not can_go_back,
        width=150,
    )


def chosen(turn: int) -> Chosen:
    """The kinds and the note given in this turn."""
    note = str(st.session_state.get(f"note-{turn}") or "").strip()
    return Chosen(tuple(st.session_state.get(f"kinds-{turn}") or ()), note or None)


def guard(*, was: str | None) -> None:
    """Comes after everything else on the screen: it takes the next press only once the trace is shown."""
    beat = int(st.session_state.get("label_beat", 0)) + 1
    st.session_state["label_beat"] = beat
    _one_press(key="one-press", data={"beat": beat, "was": was or ""})


@st.dialog("Keys and words")
def _keys() -> None:
    st.markdown(
        """
| Key | What it says |
|---|---|
| `a` | **Clean**: everything the answer says is in the sources, or follows from them |
| `x` | **Hallucinated**: something it says is not, or its form breaks its contract |
| `u` | **Unsure**: you looked, and cannot tell |
| `space` | **Skip**: it comes again at the end |
| `backspace` | **Back** to the trace before; a new verdict replaces yours |
| `1` … `6` | kinds of error, chosen before `x` |
| `↓` `↑` | scroll the sources; with `shift` the answer |

**Fabrication**: invented detail. **Contradiction**: the sources say otherwise. **Extrapolation**: goes beyond what
they say. **Wrong citation**: said by another source, or by none. **Broken contract**: not in the form that was asked.
"""
    )
    st.caption("Judge by the sources alone, even where you know better.")

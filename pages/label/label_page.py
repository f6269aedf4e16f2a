"""Label: one trace a screen, one key a verdict, in the store before the next trace shows."""

from __future__ import annotations

import streamlit as st

from pages import shell
from pages.components import evidence_choice
from pages.components.labelling import desk as labelling_desk
from pages.components.labelling import surface, verdict_bar
from pages.components.labelling.desk import Desk, Turn
from pages.components.text import plain

NAME = "label"
CARD_HEIGHT = "max(24rem, calc(100dvh - 16.5rem))"


def main() -> None:
    with shell.guarded():
        store = shell.store()
        if not store.samples.list():
            show_no_sample()
            return
        head = st.container(horizontal=True, vertical_alignment="center", key="label-head")
        status = head.container()
        with head.popover(plain(shell.user(), 30), icon=":material/person:", type="tertiary"):
            sample = evidence_choice.choose_sample(store)
            if shell.may_type_a_name():
                st.text_input("Your name", value=shell.user(), key="label_name", max_chars=100, on_change=rename)
            st.caption(f"Your verdicts are kept under {plain(shell.person().shown, 60)}.")
        assert sample is not None
        # Opening the page again starts the clock of the trace again.
        surface.desk_for(NAME, sample, shell.user(), gap_first="gap" in st.query_params).open = False
        show_turn(status)


@st.fragment
def show_turn(status: st.delta_generator.DeltaGenerator) -> None:
    """All that changes from one trace to the next."""
    with shell.guarded():
        desk = surface.desk_at(NAME)
        turn = labelling_desk.turn(shell.store(), desk)
        status.markdown(labelling_desk.status(desk, turn))
        surface.show_problem(NAME)
        if turn.pk is None or turn.trace is None:
            show_done(desk, turn)
        else:
            surface.show(NAME, desk, turn, height=CARD_HEIGHT)


def show_done(desk: Desk, turn: Turn) -> None:
    counts = labelling_desk.tally(shell.store(), desk)
    with st.container(border=True):
        st.subheader(f"All {turn.place.labelled} are labelled", anchor=False)
        words = (f"{counts[verdict]} {verdict}" for verdict in ("hallucinated", "clean", "unsure") if verdict in counts)
        st.write("You said: " + ", ".join(words) + ".")
        st.caption("Next, the detectors score the same traces; then you choose their thresholds.")
        with st.container(horizontal=True, key="verdicts"):
            may_go_on = shell.may_open("detect")
            if may_go_on and st.button(
                "Run the detectors", type="primary", icon=":material/play_circle:", key="go-detect"
            ):
                st.switch_page(shell.page("detect"))
            surface.show_back(NAME, turn)
    verdict_bar.guard(was=None)


def show_no_sample() -> None:
    with st.container(border=True):
        st.subheader("No sample to label yet", anchor=False)
        st.write(
            "A sample is a set of traces drawn at random, so that what you learn about it holds for your traffic. "
            "Draw one, and its traces come here one at a time."
        )
        if shell.may_open("sample") and st.button("Draw a sample", type="primary", icon=":material/casino:"):
            st.switch_page(shell.page("sample"))


def rename() -> None:
    name = str(st.session_state["label_name"]).strip()
    if name and shell.may_type_a_name():
        st.session_state["user"] = st.query_params["user"] = name


main()

"""Label: one trace a screen, one key a verdict, in the store before the next trace shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.types import Sample, Verdict
from pages import shell
from pages.components import labelling_desk, sample_choice, trace_card, verdict_bar
from pages.components.labelling_desk import Desk, Turn
from pages.components.text import plain

CARD_HEIGHT = "max(24rem, calc(100dvh - 16.5rem))"


def main() -> None:
    with shell.guarded():
        store = shell.store()
        if "user" in st.query_params and "user" not in st.session_state:
            st.session_state["user"] = st.query_params["user"][:100]
        if not store.samples.list():
            _no_sample()
            return
        head = st.container(horizontal=True, vertical_alignment="center", key="label-head")
        status = head.container()
        with head.popover(plain(shell.user(), 30), icon=":material/person:", type="tertiary"):
            sample = sample_choice.choose_sample(store)
            st.text_input("Your name", value=shell.user(), key="label_name", max_chars=100, on_change=_rename)
            st.caption("Each labeller's verdicts are kept under their name.")
        assert sample is not None
        st.session_state["desk"] = _desk(sample, shell.user())
        _screen(status)


@st.fragment
def _screen(status: st.delta_generator.DeltaGenerator) -> None:
    """All that changes from one trace to the next."""
    with shell.guarded():
        desk: Desk = st.session_state["desk"]
        turn = labelling_desk.turn(shell.store(), desk)
        status.markdown(_status(desk, turn))
        if error := st.session_state.pop("label_error", None):
            shell.show_error(error)
        if turn.pk is None or turn.trace is None:
            _done(desk, turn)
            return
        spans = turn.before.spans if turn.before else ()
        trace_card.show(turn.trace, spans=spans, height=CARD_HEIGHT, key="label-card", blind=True, scroll_keys=True)
        verdict_bar.show(
            turn.number,
            before=turn.before,
            went_back=desk.back_at is not None,
            can_go_back=turn.can_go_back,
            on_verdict=_on_verdict,
            on_skip=_on_skip,
            on_back=_on_back,
        )


def _desk(sample: Sample, name: str) -> Desk:
    """The desk of this visit; opening the page again starts the clock again."""
    desk: Desk | None = st.session_state.get("desk")
    if desk is None or desk.sample.id != sample.id or desk.labeller != name:
        return Desk(sample, name, turn=desk.turn if desk else 0)
    desk.open = False
    return desk


def _status(desk: Desk, turn: Turn) -> str:
    place = turn.place
    parts = [f"**{plain(desk.sample.name, 60)}**", labelling_desk.progress(place)]
    if desk.back_at is not None:
        note = f"you said {turn.before.verdict}" if turn.before else "you skipped it"
        parts.append(f"back: {note}")
    elif turn.pk is not None and place.skipped and place.labelled + place.skipped == place.size:
        parts.append(f"the {place.skipped} you skipped, once more")
    elif place.skipped:
        parts.append(f"{place.skipped} skipped")
    if desk.message:
        parts.append(f":gray[{desk.message}]")
    return " · ".join(parts)


def _done(desk: Desk, turn: Turn) -> None:
    counts = labelling_desk.tally(shell.store(), desk)
    with st.container(border=True):
        st.subheader(f"All {turn.place.size} are labelled", anchor=False)
        words = (f"{counts[verdict]} {verdict}" for verdict in ("hallucinated", "clean", "unsure") if verdict in counts)
        st.write("You said: " + ", ".join(words) + ".")
        st.caption("Next, the detectors score the same traces; then you choose their thresholds.")
        with st.container(horizontal=True, key="verdicts"):
            if st.button("Run the detectors", type="primary", icon=":material/play_circle:", key="go-detect"):
                st.switch_page(shell.page("detect"))
            verdict_bar.back(turn.number, can_go_back=turn.can_go_back, on_back=_on_back)
    verdict_bar.guard(was=None)


def _no_sample() -> None:
    with st.container(border=True):
        st.subheader("No sample to label yet", anchor=False)
        st.write(
            "A sample is a set of traces drawn at random, so that what you learn about it holds for your traffic. "
            "Draw one, and its traces come here one at a time."
        )
        if st.button("Draw a sample", type="primary", icon=":material/casino:"):
            st.switch_page(shell.page("sample"))


def _on_verdict(number: int, verdict: Verdict) -> None:
    desk: Desk = st.session_state["desk"]
    picked = verdict_bar.chosen(number)
    with _errors_shown_above():
        labelling_desk.answer(shell.store(), desk, number, verdict, kinds=picked.kinds, note=picked.note)


def _on_skip(number: int) -> None:
    with _errors_shown_above():
        labelling_desk.skip(shell.store(), st.session_state["desk"], number)


def _on_back(number: int) -> None:
    with _errors_shown_above():
        labelling_desk.back(shell.store(), st.session_state["desk"], number)


@contextmanager
def _errors_shown_above() -> Iterator[None]:
    """What goes wrong in a callback is shown above the trace, which stays until its label is in the store."""
    try:
        yield
    except TouchstoneError as error:
        st.session_state["label_error"] = error
    except Exception:
        shell.log.exception("a label was not saved")
        st.session_state["label_error"] = TouchstoneError(
            "This was not saved. The trace is still here: press again. The log of the server has the details."
        )


def _rename() -> None:
    name = str(st.session_state["label_name"]).strip()
    if name:
        st.session_state["user"] = st.query_params["user"] = name


main()

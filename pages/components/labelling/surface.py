"""The labelling surface: one trace with the verdict bar below it, and what the buttons of the bar do.

`name` tells the surfaces of two pages apart: a session keeps the desk of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import streamlit as st

from calibrate.types import Sample, Verdict
from pages import shell
from pages.components.labelling import desk as labelling_desk
from pages.components.labelling import trace_card, verdict_bar
from pages.components.labelling.desk import Desk, Turn


def desk_for(name: str, sample: Sample, labeller: str, *, only_open: bool = False, gap_first: bool = False) -> Desk:
    """The desk of this visit: a new one for another sample or labeller, and for a queue in another order."""
    desk: Desk | None = st.session_state.get(f"{name}_desk")
    visit = (sample.id, labeller, gap_first)
    if desk is None or (desk.sample.id, desk.labeller, desk.gap_first) != visit:
        desk = Desk(sample, labeller, turn=desk.turn if desk else 0, only_open=only_open, gap_first=gap_first)
        st.session_state[f"{name}_desk"] = desk
    return desk


def desk_at(name: str) -> Desk:
    desk: Desk = st.session_state[f"{name}_desk"]
    return desk


def leave(name: str) -> None:
    st.session_state.pop(f"{name}_desk", None)


def show(name: str, desk: Desk, turn: Turn, *, height: str) -> None:
    """The trace of this turn and the bar; the model that answered stays hidden."""
    assert turn.trace is not None
    spans = turn.before.spans if turn.before else ()
    trace_card.show(turn.trace, spans=spans, height=height, key=f"{name}-card", blind=True, scroll_keys=True)
    verdict_bar.show(
        turn.number,
        before=turn.before,
        went_back=desk.back_at is not None,
        can_go_back=turn.can_go_back,
        on_verdict=partial(_answer, name),
        on_skip=partial(_skip, name),
        on_back=partial(_back, name),
    )


def show_back(name: str, turn: Turn) -> None:
    """The Back button alone, where no trace is left to label."""
    verdict_bar.back(turn.number, can_go_back=turn.can_go_back, on_back=partial(_back, name))


@contextmanager
def errors_kept(name: str) -> Iterator[None]:
    """Keep what goes wrong in a callback, to be shown above the trace: it stays until its label is saved."""
    with shell.errors_kept(f"{name}_problem"):
        yield


def show_problem(name: str) -> None:
    shell.show_kept_error(f"{name}_problem")


def _answer(name: str, number: int, verdict: Verdict) -> None:
    picked = verdict_bar.chosen(number)
    with errors_kept(name):
        labelling_desk.answer(shell.store(), desk_at(name), number, verdict, kinds=picked.kinds, note=picked.note)


def _skip(name: str, number: int) -> None:
    with errors_kept(name):
        labelling_desk.skip(shell.store(), desk_at(name), number)


def _back(name: str, number: int) -> None:
    with errors_kept(name):
        labelling_desk.back(shell.store(), desk_at(name), number)

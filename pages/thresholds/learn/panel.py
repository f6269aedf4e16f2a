"""Learn from labels: one button, whether it gains with the figures, and the head in use afterwards."""

from __future__ import annotations

import streamlit as st

from calibrate.detectors.learned import NAME
from calibrate.errors import BadInput
from calibrate.report.numbers import decimal_interval, decimals, labelled, signed
from calibrate.report.sentences.tuning import learning as wording
from calibrate.types import Interval
from calibrate.workflow.tuning import learn as step
from db import Store
from pages import shell
from pages.components.text import plain, spoken
from pages.components.verdict_box import save_anyway

LEARNED_FOR = "learned_for"
REASON = "learn_reason"
ABOUT = (
    "Fit a head on what the detectors find in each sentence, and see whether it ranks better than the best single "
    "detector on labels that it has not seen."
)


def show(store: Store, sample: str | None) -> None:
    """The button, and what it gave for the labels at hand."""
    st.header("Learn from labels", anchor=False)
    st.caption(ABOUT)
    if st.session_state.get(LEARNED_FOR) != (store.url, sample):
        st.button(
            "Learn from these labels", icon=":material/school:", on_click=_ask, args=(store, sample), key="learn"
        )  # fmt: skip
        return
    try:
        learning = build(store, sample)
    except BadInput as error:
        why = str(error)
        with st.container(border=True):
            st.markdown(f"**Nothing to learn from yet.** {plain(why[:1].upper() + why[1:])}.")
            with st.container(horizontal=True):
                st.page_link(shell.page("label"), label="Label traces", icon=":material/check_box:")
                st.page_link(shell.page("detect"), label="Run detectors", icon=":material/play_circle:")
        return
    with st.container(border=True, key="learn-answer"):
        _show_answer(store, sample, learning)
    shell.show_kept_error("learn_problem")


@shell.cached_read("Learning, and judging on labels that were left out …", *shell.EVIDENCE, "team", entries=10)
def build(store: Store, sample: str | None) -> step.Learning:
    """The head judged out of fold: thousands of small fits take a few seconds."""
    return step.learn(store, sample=sample, now=shell.now())


def _ask(store: Store, sample: str | None) -> None:
    st.session_state[LEARNED_FOR] = (store.url, sample)


def _show_answer(store: Store, sample: str | None, learning: step.Learning) -> None:
    first, _, rest = wording.answer(learning).partition(": ")
    icon = ":material/check_circle:" if learning.gains else ":material/do_not_disturb_on:"
    st.markdown(f"{icon} **{plain(first)}:** {plain(rest, 600)}")
    of_labels = labelled(learning.n, learning.positives)
    places = st.columns(3)
    for place, (name, figure, large) in zip(
        places,
        (
            ("AUROC learned", learning.auroc, decimals(learning.auroc.value, 2)),
            ("AUROC best single", learning.best_auroc, decimals(learning.best_auroc.value, 2)),
            ("Difference", learning.difference, _signed(learning.difference)),
        ),
        strict=True,
    ):
        places_of = 3 if name == "Difference" else 2
        reach = decimal_interval(figure.low, figure.high, places_of)
        place.metric(name, large, reach, delta_color="off", delta_arrow="off", help=f"Out of fold; {of_labels}")
    if step.is_in_use(store, learning):
        st.markdown(":material/check: In use: run it on the traffic, then label traces that it has not seen.")
        st.page_link(
            shell.page("detectors"), label="Run Learned from labels", icon=":material/play_circle:",
            query_params={"detector": NAME},
        )  # fmt: skip
    elif learning.gains:
        st.button(
            "Use this head", type="primary", icon=":material/bookmark_add:", on_click=_save, args=(store, sample),
            key="learn-save",
        )  # fmt: skip
    else:
        save_anyway(_save, (store, sample), key=REASON, label="Use this head anyway")
    st.caption(spoken(wording.cost(learning), 400))
    with st.expander("What it reads"):
        for note in wording.notes(learning):
            st.markdown(plain(note, 900))


def _signed(figure: Interval) -> str:
    return "–" if figure.value is None else signed(figure.value)


def _save(store: Store, sample: str | None) -> None:
    """Use the head from now on. A second press saves the same one again."""
    with shell.errors_kept("learn_problem"):
        reason = str(st.session_state.get(REASON) or "")
        step.save(store, build(store, sample), reason=reason, by=shell.user(), now=shell.now())
        if REASON in st.session_state:
            st.session_state[REASON] = ""

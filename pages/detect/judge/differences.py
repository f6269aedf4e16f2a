"""Where a judge and people differ most: each answer with what either says of it, its sources folded."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count
from calibrate.report.sentences.detection import aligning as sentences
from calibrate.types import Trace
from calibrate.workflow.aligning.side_by_side import Difference, SideBySide, shared_remarks
from db import Store
from pages import shell
from pages.components.labelling import trace_card
from pages.components.text import plain, visible

SHOWN, MORE = 3, 20
QUESTION, ANSWER, REASON = 300, 600, 600  # characters; the fold has all
# Taller on a phone, where sources stand below the answer.
HEIGHT = "clamp(26rem, calc(60rem - 40vw), 44rem)"


def show(store: Store, both: SideBySide, name: str) -> None:
    """The answers on which they differ most, a card each, and once what the judge remarks on all of them."""
    if not both.differences:
        return
    st.caption("Where they differ most:")
    remarks = shared_remarks(both.differences)
    for remark in remarks:
        st.caption(f"Of every score here: {plain(remark, REASON)}.")
    more = len(both.differences) > SHOWN and st.toggle(f"Show {len(both.differences)}", key=f"apart_{name}")
    shown = both.differences[: MORE if more else SHOWN]
    for each, trace in zip(shown, store.traces.load([each.pk for each in shown]), strict=True):
        _show_difference(store, each, trace, remarks)


def _show_difference(store: Store, each: Difference, trace: Trace, remarks: tuple[str, ...]) -> None:
    with st.container(border=True, gap="small", key=f"apart-{each.pk}"):
        if trace.question:
            with st.container(gap=None):
                st.caption("Question")
                st.text(visible(trace.question, QUESTION))
        with st.container(gap=None):
            st.caption("Answer")
            st.text(visible(trace.answer, ANSWER))
        judge, people = st.columns(2)
        with judge, st.container(gap=None):
            st.caption("The judge")
            st.markdown(f"**{plain(sentences.judge_says(each))}**")
            for reason in each.reasons:
                if reason.text not in remarks:
                    st.text(visible(reason.text, REASON))
        with people, st.container(gap=None):
            st.caption("People")
            st.markdown(f"**{plain(sentences.people_say(each))}**")
            if each.note:
                st.text(visible(each.note, REASON))
            else:
                st.markdown(":gray[no note]")
        with st.expander(_folded(trace)):
            spans = [span for label in store.labels.of_trace(each.pk) for span in label.spans]
            trace_card.show(trace, spans=spans, height=HEIGHT, key=f"apart_card_{each.pk}")
        quoted = " · stands in a prompt" if each.quoted else ""
        st.page_link(
            shell.page("traces"),
            label=f"{plain(each.trace_id, 80)}{quoted}",
            icon=":material/open_in_new:",
            query_params={"trace": each.trace_id},
        )


def _folded(trace: Trace) -> str:
    """What the fold holds: "The answer beside its 3 sources"."""
    answer = "The whole answer" if len(trace.answer) > ANSWER else "The answer"
    return f"{answer} beside its {count(len(trace.sources), 'source') if trace.sources else 'context'}"

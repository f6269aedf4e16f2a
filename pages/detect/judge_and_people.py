"""A judge beside people: where they differ most, and a prompt made from the guidelines and labels."""

from __future__ import annotations

import shlex

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.report.numbers import ago, count
from calibrate.report.sentences import aligning as sentences
from calibrate.workflow.aligning import comparison, proposal, saving
from calibrate.workflow.aligning.judges import alignable, file_of, load_judge
from calibrate.workflow.aligning.side_by_side import Difference, SideBySide, side_by_side
from db import Store
from pages import shell
from pages.components.text import plain

SHOWN, MORE = 5, 20
REASON = 600  # characters


def show(store: Store, name: str, sample: str | None) -> None:
    """Judge and people side by side, and a prompt from labels; nothing for a detector that cannot be aligned."""
    if name not in alignable():
        return
    with st.expander("Judge and people", icon=":material/compare:"):
        if not store.scores.configs(name):
            st.caption("It was not run yet. Here you would see where it and your people differ most, side by side.")
            return
        both = _side_by_side(store, name)
        if not both.labels:
            st.caption("No answer has both a label and its score yet. Run it over the labelled traces, above.")
            return
        _show_differences(both, name)
        _show_prompt(store, name, sample)


def _show_differences(both: SideBySide, name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{sentences.apart(both)}**", width="content")
        st.page_link(shell.page("guidelines"), label="Improve the guidelines", icon=":material/menu_book:")
    if not both.differences:
        return
    st.caption("Where they differ most. If people are right, the guidelines may not say it clearly enough for a judge.")
    more = st.toggle(f"Show {MORE}", key=f"apart_{name}") if len(both.differences) > SHOWN else False
    for each in both.differences[: MORE if more else SHOWN]:
        _show_difference(each)


def _show_difference(each: Difference) -> None:
    with st.container(border=True, gap="xsmall"):
        quoted = " · stands in a prompt" if each.quoted else ""
        st.page_link(
            shell.page("traces"),
            label=f"{plain(each.trace_id, 80)}{quoted}",
            query_params={"trace": each.trace_id},
        )
        judge, people = st.columns(2)
        with judge, st.container(gap=None):
            st.caption("The judge")
            st.markdown(f"**{plain(sentences.judge_says(each))}**")
            for reason in each.reasons:
                st.markdown(plain(reason.text, REASON))
        with people, st.container(gap=None):
            st.caption("People")
            st.markdown(f"**{plain(sentences.people_say(each))}**")
            st.markdown(plain(each.note, REASON) if each.note else ":gray[no note]")


def _show_prompt(store: Store, name: str, sample: str | None) -> None:
    st.markdown("**A prompt from your guidelines and labels**")
    for version in store.prompt_examples.versions(file_of(name))[:1]:
        st.caption(
            plain(
                f"Version {version.version}, saved by {version.saved_by} {ago(version.saved_at, shell.now())}, quotes "
                f"{count(version.quoted, 'label')}; {count(version.set_aside)} were set aside for it."
            )
        )
    if not st.toggle("Propose a new one", key=f"propose_{name}"):
        return
    try:
        proposed = _propose(store, name, sample)
    except TouchstoneError as error:
        shell.show_error(error)
        return
    st.markdown(plain(f"It holds {sentences.holds(proposed)}. {sentences.too_long(proposed) or ''}"))
    stored = comparison.newest_comparison(store, name, after=proposed.after)
    if stored is None:
        st.caption("Not compared with the present prompt yet. In a terminal: first what it costs, then the comparison.")
        of = f" --sample {shlex.quote(sample)}" if sample else ""
        compare = f"python -m calibrate align compare {shlex.quote(name)}{of}"
        st.code(f"{compare} --estimate\n{compare}", language=None)
    else:
        compared = comparison.read_comparison(stored)
        st.markdown(f"**{sentences.verdict(compared)}**")
        st.caption("  \n".join(plain(line) for line in sentences.figures(compared)))
    with st.popover("The prompt, and saving it", icon=":material/save:"):
        st.code(proposed.text, language=None, wrap_lines=True, height=320)
        st.markdown(plain(sentences.costs_labels(proposed)))
        st.button("Save this prompt", type="primary", key=f"align_{name}", on_click=_save, args=(store, proposed))


def _save(store: Store, proposed: proposal.Proposal) -> None:
    saving.save(store, proposed, by=shell.user(), now=shell.now())
    st.toast("The prompt is saved. The scores so far are of the one before: run the judge again.")


@shell.cached_read("Putting judge and people side by side …", *shell.EVIDENCE, "team", "guides", entries=20)
def _side_by_side(store: Store, name: str) -> SideBySide:
    return side_by_side(store, name, limit=MORE)


@shell.cached_read("Choosing examples …", *shell.EVIDENCE, "team", "guides", "purges", entries=10)
def _propose(store: Store, name: str, sample: str | None) -> proposal.Proposal:
    return proposal.propose(store, load_judge(store, name, sample=sample))

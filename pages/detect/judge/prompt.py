"""A prompt made from the guidelines and labels: what is known of it, its text, and saving it."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import BadInput, TouchstoneError
from calibrate.report.numbers import ago, count
from calibrate.report.sentences.detection import aligning as sentences
from calibrate.workflow.aligning import proposal, saving
from calibrate.workflow.aligning.judges import file_of, load_judge
from calibrate.workflow.detection import team_files
from db import Store
from pages import shell
from pages.components.text import plain
from pages.components.verdict_box import NO_REASON

PROBLEM = "judge_prompt_problem"
RUN_FIRST = "Run the judge first: examples are chosen by where it is wrong under the prompt in use."


def show(store: Store, name: str, *, stale: bool) -> None:
    """The version in use, and the prompt that all labels that count would make now. `stale`: the judge was not run
    under the one in use, so that nobody can say where it is wrong."""
    with st.container():  # always there, so that what is unfolded below stays so when an error comes
        shell.show_kept_error(PROBLEM)
    _show_version(store, name)
    if stale:
        st.caption(RUN_FIRST)
        return
    try:
        proposed = _propose(store, name)
    except TouchstoneError as error:
        shell.show_error(error)
        return
    standing = saving.find_standing(store, proposed)
    st.markdown(plain(f"A new one would hold {sentences.holds(proposed)}. {sentences.too_long(proposed) or ''}"))
    st.markdown(f"**{plain(sentences.stands(proposed, standing))}**")
    if standing.compared is not None:
        st.caption("  \n".join(plain(line) for line in sentences.figures(standing.compared)))
    elif not standing.in_use:
        st.caption("In a terminal: first what the comparison costs, then the comparison.")
        compare = f"python -m calibrate align compare {name}"
        st.code(f"{compare} --estimate\n{compare}", language=None, wrap_lines=True)
    with st.expander(f"The prompt {proposed.after}", icon=":material/chat:"):
        st.code(proposed.text, language=None, wrap_lines=True, height=420)
    if not standing.in_use:
        _offer_save(store, name, proposed, gains=standing.gains)


def _show_version(store: Store, name: str) -> None:
    file = team_files.get(store, file_of(name))
    of_labels = next((each for each in store.prompt_examples.versions(file.name) if each.version == file.version), None)
    if of_labels is None:
        st.caption(f"In use is version {file.version}, which was not made from labels.")
        return
    saved = f"saved by {of_labels.saved_by} {ago(of_labels.saved_at, shell.now())}"
    origin = f"made from guide version {of_labels.guide}, quotes {count(of_labels.quoted, 'label')}"
    aside = f"{count(of_labels.set_aside, 'label')} left calibration for it"
    st.caption(plain(f"In use is version {file.version}, {saved}: {origin}; {aside}."))
    if reason := file.history[0].reason:
        st.caption(plain(f"It was not shown to judge better. Saved because: {reason}", 400))


def _offer_save(store: Store, name: str, proposed: proposal.Proposal, *, gains: bool) -> None:
    st.caption(plain(sentences.costs_labels(proposed)))
    if gains:
        st.button(
            "Save this prompt", type="primary", icon=":material/save:", key=f"align_{name}", on_click=_save,
            args=(store, proposed),
        )  # fmt: skip
        return
    with st.expander("Save it all the same", icon=":material/save:"):
        key = f"align_reason_{name}"
        st.text_input("Reason", key=key, max_chars=300, placeholder="kept with this version of the prompt")
        st.button("Save this prompt anyway", key=f"align_{name}", on_click=_save, args=(store, proposed, key))


def _save(store: Store, proposed: proposal.Proposal, reason_key: str | None = None) -> None:
    """Save the prompt; one that is not shown to gain needs what is in the field for the reason."""
    reason = str(st.session_state.get(reason_key) or "").strip() if reason_key else ""
    with shell.errors_kept(PROBLEM):
        if reason_key and not reason:
            raise BadInput(NO_REASON)
        saving.save(store, proposed, reason=reason, by=shell.user(), now=shell.now())
        st.toast("The prompt is saved. The scores so far are of the one before: run the judge again.")


@shell.cached_read("Choosing examples …", *shell.EVIDENCE, "team", "guides", "purges", entries=10)
def _propose(store: Store, name: str) -> proposal.Proposal:
    return proposal.propose(store, load_judge(store, name))

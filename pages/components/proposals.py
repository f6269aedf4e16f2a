"""Releases that wait for a second person: what each would change, approve, decline."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.report.numbers import ago
from calibrate.report.sentences.releasing.release import known_bad_in
from calibrate.workflow.releasing import approval, history
from db import Store
from db.releases import Proposal
from pages import shell
from pages.components.release_diff import show_changes
from pages.components.text import plain, visible


def show_proposals(store: Store, now: datetime, approve: Callable[..., None], decline: Callable[..., None]) -> bool:
    """Show every waiting proposal, newest first; returns whether there is any.

    The callbacks take the store and the proposal's number.
    """
    waiting = approval.waiting(store)
    for proposal in waiting:
        with st.container(border=True, key=f"release-proposal-{proposal.id}"):
            _proposal(store, proposal, now, approve, decline)
    return bool(waiting)


def heading(store: Store, proposal: Proposal, now: datetime) -> str:
    """What waits and since when, in Markdown."""
    by = f"Proposed {ago(proposal.proposed_at, now)} by {plain(proposal.proposed_by, 60)}"
    if approval.outlived(store, proposal, now):
        return f"**A proposal was overtaken by another release** and can only be declined. {by}."
    return f"**v{proposal.expected} waits for a second person.** {by}."


def _proposal(
    store: Store, proposal: Proposal, now: datetime, approve: Callable[..., None], decline: Callable[..., None]
) -> None:
    own, hindrance = approval.same_person(proposal.proposed_by, shell.user()), _hindrance()
    st.markdown(f":material/how_to_reg: {heading(store, proposal, now)}")
    if note := proposal.request.full_note:
        st.text(visible(note, 500))
    outlived = None
    try:
        file = approval.preview(store, proposal, now)
        show_changes(store, history.live_release(store), file)
        for words in known_bad_in(file):
            st.warning(plain(words, 600), icon=":material/block:")
    except TouchstoneError as error:  # only to be declined
        outlived = str(error)
    with st.container(horizontal=True, vertical_alignment="center"):
        if not outlived:
            st.button(
                f"Approve and release v{proposal.expected}",
                type="primary",
                icon=":material/verified:",
                key=f"release_approve_{proposal.id}",
                disabled=own or bool(hindrance),
                on_click=approve,
                args=(store, proposal.id),
            )
        st.button(
            "Take it back" if own else "Decline",
            key=f"release_decline_{proposal.id}",
            on_click=decline,
            args=(store, proposal.id),
        )
        if reason := outlived or ("It is yours: somebody else approves it." if own else hindrance):
            st.caption(plain(reason))


def _hindrance() -> str | None:
    """Why this person may approve nothing; None where they may."""
    person = shell.person()
    if not person.actor.verified:
        return "Nobody vouches for your name, so you cannot approve. Sign in, or use your own login."
    if person.roles is not None and "approver" not in person.roles:
        return "Somebody with the role approver approves it."
    return None

"""What the buttons of the Release page do, each once however often it is pressed, and what to show after."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import streamlit as st

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing import release as sentences
from calibrate.thresholds import diff
from calibrate.thresholds.signing import Signer, read_signer
from calibrate.workflow.releasing import approval, git_export, history
from calibrate.workflow.releasing import release as step
from calibrate.workflow.releasing.announce import announce
from calibrate.workflow.releasing.entries import on_offer
from db import Store
from db.releases import Release
from pages import shell
from pages.components import release_history
from pages.components.text import plain
from pages.release import release_form

DONE, PROBLEM, RELEASED, OFFER = "release_done", "release_problem", "release_made", "release_offer"


def carried_out(store: Store, does: Callable[[], Release | str | None]) -> bool:
    """Do what a button asks for and keep what to show after. A release is announced, a text is shown.

    Returns False if it failed or there was nothing to do.
    """
    result = None
    with shell.errors_kept(PROBLEM):
        result = does()
        if isinstance(result, Release):
            problems = [sentences.overtaken(past) for past in approval.overtaken(store, result.version)]
            problems += [sentences.unannounced(failure) for failure in announce(result, settings.releases(), store)]
            st.session_state[DONE] = st.session_state[RELEASED] = result.version, release_form.place(), problems
        elif result:
            st.session_state[DONE] = result
    return result is not None


def written(version: int) -> str | None:
    """The file that a release was written to: by this session, or by the export to git; None where there is none."""
    if (latest := st.session_state.get(RELEASED)) and latest[0] == version and latest[1]:
        return str(latest[1])
    place = Path(settings.releases().git) if settings.releases().git else None
    return None if place is None else str(place / git_export.FILE if place.is_dir() else place)


def pressed_twice(live: int) -> bool:
    """Whether this session has just released the live version. Its result is shown again: the second press may have
    interrupted the run that showed it."""
    result = st.session_state.get(RELEASED)
    if result is None or result[0] != live:
        return False
    st.session_state[DONE] = result
    return True


def release(store: Store, point_ids: Collection[int], version: int) -> None:
    """Release or propose `version`. A second press finds that number taken, or nothing left to change.

    The widgets are read now: what the page was last drawn with may be a key press old.
    """

    def does() -> Release | str | None:
        shell.require("calibrator")
        chosen, before = release_form.chosen(store, point_ids), history.live_release(store)
        if before and not diff(before, release_form.candidate_of(store, chosen, before, shell.now())):
            if pressed_twice(before.version):
                return None
            raise BadInput(f"v{before.version} was released in the meantime, and is what you chose")
        if settings.releases().approval:
            approval.propose(store, chosen, now=shell.now(), expect=version)
            return f"v{version} is proposed. Another person approves it."
        return step.release(store, chosen, now=shell.now(), expect=version, out=release_form.place(), sign=_signer())

    if carried_out(store, does):
        st.session_state.update(release_note="", release_reason="")


def roll_back(store: Store, version: int, live: int) -> None:
    """Roll back to a version. A second press finds another version live, and does nothing."""

    def does() -> Release | None:
        shell.require("calibrator")
        newest = history.live_release(store)
        if newest is None or newest.version != live:
            if newest is None or pressed_twice(newest.version):
                return None
            raise BadInput(f"v{newest.version} was released in the meantime: look at what it changed, then go on")
        by, moment = shell.user(), shell.now()
        return step.rollback(
            store, version, by=by, now=moment, out=release_form.place(), expect=live + 1, sign=_signer()
        )

    if carried_out(store, does) and (back := history.live_release(store)):
        st.session_state[OFFER] = sentences.on_offer(version, on_offer(store, back))
        for key in ("release_ensembles", *(f"release_tier_{name}" for name in back.detectors)):
            st.session_state.pop(key, None)  # the form starts from what is live


def approve(store: Store, key: int) -> None:
    def does() -> Release:
        shell.require("approver")
        out = release_form.place()
        return approval.approve(store, key, by=shell.user(), now=shell.now(), out=out, sign=_signer())

    carried_out(store, does)


def decline(store: Store, key: int) -> None:
    def does() -> str:
        shell.require("approver", "calibrator")
        approval.decline(store, key, by=shell.user(), now=shell.now())
        return f"Proposal {key} is declined."

    carried_out(store, does)


def _signer() -> Signer:
    """The key that this server signs releases with."""
    return read_signer(settings.releases().sign)


def tell(store: Store) -> None:
    """Show what the last press did."""
    shell.show_kept_error(PROBLEM)
    done = st.session_state.pop(DONE, None)
    if isinstance(done, str):
        st.success(plain(done.replace("`", "")), icon=":material/how_to_reg:")
    elif done:
        number, path, problems = done
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            where = f" It is also in {plain(path)}." if path else ""
            st.markdown(f":material/verified: **v{number} is released.**{where}", width="stretch")
            if version := store.releases.get(number):
                release_history.download(version, key="new")
        for sentence in st.session_state.pop(OFFER, ()):
            st.caption(plain(f"{sentence}."))
        for sentence in problems:
            st.warning(plain(sentence), icon=":material/sync_problem:")

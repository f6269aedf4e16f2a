"""Release: the saved operating points become the next, immutable version of the thresholds file."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from calibrate.errors import TouchstoneError
from calibrate.steps import release as step
from db import Store
from db.releases import Release
from pages.parts import releasing, workbench
from pages.parts.navigation import page
from pages.parts.text import plain
from pages.parts.words import count


def release(store: Store, seen: Collection[int], version: int) -> None:
    """Releases `version` or nothing: a second press finds that number taken, or nothing left to change.

    What is ticked and written is asked of the widgets now: what the page was last drawn with may be a key press old.
    """
    state = st.session_state
    try:
        chosen = releasing.chosen(store, seen)
        newest = next(iter(store.releases.list()), None)
        if newest and not releasing.changes_of(store, chosen, newest, workbench.now()):
            return
        done = step.release(
            store,
            detectors=list(chosen.tiers),
            tiers=chosen.tiers,
            ensembles=chosen.ensembles,
            note=chosen.note,
            by=workbench.user(),
            now=workbench.now(),
            out=chosen.out,
            expect=version,
        )
    except TouchstoneError as error:
        state["release_problem"] = error
        return
    state["release_done"] = done.version, str(chosen.out) if chosen.out else None
    state["release_note"] = ""


def tell(store: Store) -> None:
    """What the last press did."""
    if problem := st.session_state.pop("release_problem", None):
        workbench.problem(problem)
    if done := st.session_state.pop("release_done", None):
        number, path = done
        version = store.releases.get(number)
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            where = f" It is also in {plain(path)}." if path else ""
            st.markdown(f":material/verified: **v{number} is released.**{where}", width="stretch")
            if version:
                releasing.download(version, key="new")


def form(store: Store, newest: Release | None) -> None:
    number = newest.version + 1 if newest else 1
    saved = store.points.latest()
    before = step.read(newest) if newest else None
    live = {name: entry.tier for name, entry in before.detectors.items()} if before else {}
    tiers = releasing.choose_points(store, saved, live)
    releasing.choose_ensembles(store, before.ensembles if before else ())
    left, right = st.columns(2, gap="large")
    with left:
        st.text_area("Note", key="release_note", placeholder="Why this release, for those who read it later")
        st.text_input("Also write to a file on this machine", placeholder="not written", key="release_out")
    seen = [point.id for point in saved.values()]
    changes = releasing.changes_of(store, releasing.chosen(store, seen), newest, workbench.now()) if tiers else []
    with right:
        if tiers:
            releasing.show_changes(changes, f"v{newest.version}" if newest else None)
        else:
            st.caption("Tick at least one detector.")
    with left:
        st.button(
            f"Release v{number}" + (f" with {count(len(tiers), 'detector')}" if tiers else ""),
            type="primary",
            icon=":material/verified:",
            disabled=not changes,
            on_click=release,
            args=(store, seen, number),
        )


with workbench.page(
    "Release", "Turn the saved operating points into the next version of the thresholds file."
) as found:
    versions = found.releases.list()
    tell(found)
    if found.points.latest():
        form(found, versions[0] if versions else None)
    else:
        with st.container(border=True):
            st.markdown("**No operating point is saved yet.** Save a threshold for a detector, and it is offered here.")
            st.page_link(page("tune"), label="Choose thresholds", icon=":material/tune:")
    releasing.show_history(found, workbench.now())
    if versions:
        releasing.show_reader(list(step.read(versions[0]).detectors))

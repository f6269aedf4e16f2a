"""Release: the saved operating points become the next, immutable version of the thresholds file."""

from __future__ import annotations

import streamlit as st

from calibrate import settings
from calibrate.report.numbers import count
from calibrate.thresholds import diff
from calibrate.thresholds.states import states_in
from calibrate.workflow.releasing import history
from db import Store
from pages import shell
from pages.components import proposals, release_diff, release_history, unknown_models
from pages.release import release_actions, release_form, release_labels


def form(store: Store, *, quiet: bool) -> None:
    """The form of the next release. `quiet` if something else on the page comes first."""
    before, saved = history.live_release(store), store.points.latest()
    number = before.version + 1 if before else 1
    live = {name: entry.tier for name, entry in before.detectors.items()} if before else {}
    tiers = release_form.choose_points(store, saved, live)
    release_labels.show(store, saved)
    release_form.choose_ensembles(store, before.ensembles if before else ())
    point_ids = [point.id for point in saved.values()]
    if not tiers:
        st.caption("Tick at least one detector.")
        return
    file = release_form.candidate_of(store, release_form.chosen(store, point_ids), before, shell.now())
    if before and not diff(before, file):
        st.markdown(f":material/check: Nothing changes against v{before.version}: there is nothing to release.")
        return
    left, right = st.columns(2, gap="large")
    with right:
        effect = release_diff.show_changes(store, before, file)
        bad = any(judged.state.known_bad and not judged.reason for judged in states_in(file))
    with left:
        shell.restore("release_note")
        st.text_input("Note", key="release_note", placeholder="Why this release, for those who read it later")
        shell.keep("release_note")
        lacks = False
        worse = bool(effect and effect.worse)
        if worse or bad:
            shell.restore("release_reason")
            why = "Why it may be worse than the live release" if worse else "Why it shall go out though known to be bad"
            st.text_area("Reason", key="release_reason", placeholder=why)
            shell.keep("release_reason")
            lacks = not str(st.session_state.get("release_reason") or "").strip()
        does = "Propose" if settings.releases().approval else "Release"
        st.button(
            f"{does} v{number} with {count(len(tiers), 'detector')}",
            type="secondary" if quiet else "primary",
            icon=":material/verified:",
            disabled=lacks or not shell.has_role("calibrator"),
            help="A point is worse or known to be bad: give the reason first." if lacks else None,
            on_click=release_actions.release,
            args=(store, point_ids, number),
        )
        release_form.choose_place()


with shell.page_frame(
    "Release", "Turn the saved operating points into the next version of the thresholds file."
) as store:
    release_actions.tell(store)
    unknown_models.show(store)
    waiting = proposals.show_proposals(store, shell.now(), release_actions.approve, release_actions.decline)
    if store.points.latest():
        form(store, quiet=waiting)
    else:
        with st.container(border=True):
            st.markdown("**No operating point is saved yet.** Save a threshold for a detector, and it is offered here.")
            st.page_link(shell.page("tune"), label="Choose thresholds", icon=":material/tune:")
    if live := next(iter(store.releases.list(limit=1)), None):
        release_history.show_reader(live, release_actions.written(live.version))
    release_history.show_history(store, shell.now(), release_actions.roll_back)

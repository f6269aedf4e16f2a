"""Guidelines: what labellers are told, and the kinds of error. Calibrators change them; every change is a version."""

from __future__ import annotations

import streamlit as st

from calibrate.report.sentences.labelling import guides as sentences
from calibrate.report.tables.guides import OURS
from calibrate.workflow.labelling import guide_changes, guides
from pages import shell
from pages.components.text import plain
from pages.label import guide_form, guide_history

with shell.page_frame(
    "Guidelines", "What labellers are told, and the kinds of error. A label keeps the version it was made under."
) as store:
    guide = guides.current(store)
    when = f"saved by {plain(guide.saved_by, 60)}" if guide.saved_by else OURS
    saved = st.session_state.pop("guide_saved", None)
    if saved is not None:
        st.markdown(f":material/check: **Version {saved} is saved.** Labels are given under it from now on.")
    st.caption(f"Version {guide.version}, {when}.")
    if shell.has_role("calibrator"):
        guide_form.edit(store, guide)
    else:
        guide_form.read(guide)
    if gone := guide_changes.retired(store):
        st.caption(plain(sentences.retired(gone)))
    if guide.version:
        with st.expander("History", icon=":material/history:"):
            guide_history.show(guides.history(store))

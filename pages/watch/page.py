"""Watch: a row for each live threshold, what is due in it, and what the traffic brought since the release."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import ago
from calibrate.types import TraceFilter
from calibrate.workflow.watching.new_models import NewModel, new_models
from db import Store
from pages import shell
from pages.components import live_rows, unknown_models
from pages.components.text import plain
from pages.watch import details, flagged, rows


@shell.cached_read(None, *shell.EVIDENCE, "releases", "team")
def models_of(store: Store) -> tuple[NewModel, ...]:
    """The models that the live release does not know, with the labels that they need."""
    return new_models(store)


def show(store: Store) -> None:
    now, standing = shell.now(), live_rows.standing(store)
    release = store.releases.list(limit=1)[0]
    st.markdown(
        f"**v{release.version} is live** :gray[:small[released {ago(release.released_at, now)} by "
        f"{plain(release.released_by, 60)}]]"
    )
    primary = rows.show(standing, now)
    unknown_models.show_banner(models_of(store), release.version, primary=not primary)
    flagged.show(store)
    details.show(store, standing, release)


def show_empty(store: Store) -> None:
    """What would be here, and the way to it."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            "**Nothing is live yet.** Once thresholds are released, each has a row here: what it promised, what is "
            "known of it now, and whether it still holds.",
            width="stretch",
        )
        labelled = bool(store.labels.gold_counts())
        key, text = ("tune", "Choose thresholds") if labelled else ("label", "Label traces")
        if not store.traces.count(TraceFilter(), limit=1):
            key, text = "import", "Import traces"
        if st.button(text, type="primary", disabled=not shell.may_open(key)):
            st.switch_page(shell.page(key))


with shell.page_frame("Watch", "Do the live thresholds still do what they promised?") as opened:
    if opened.releases.list(limit=1):
        show(opened)
    else:
        show_empty(opened)
        if opened.traces.count(TraceFilter(), limit=1):
            details.show_models_alone(opened)

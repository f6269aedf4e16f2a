"""One line wherever a threshold is shown: models of today's traffic that the live release does not know."""

from __future__ import annotations

import streamlit as st

from calibrate.report.numbers import count, day, listed, share
from calibrate.workflow.releasing.unknown_models import unknown_models
from db import Store
from pages import shell
from pages.components.text import middle, plain, visible


def show(store: Store, *, links: bool = True) -> None:
    """Show nothing if the release knows every model, or nothing is released. `links` lead to what can be done."""
    release = next(iter(store.releases.list(limit=1)), None)
    models = unknown_models(store, release) if release else ()
    if release is None or not models:
        return
    names = listed([middle(visible(model.name, 200), 40) for model in models])
    with st.container(border=True, key="unseen"):
        text, *places = st.columns([5, 0.8, 1.1] if links else [1], vertical_alignment="center")
        text.markdown(
            f":material/warning: **{plain(names)}** {'answer' if len(models) > 1 else 'answers'} "
            f"{share(sum(model.share for model in models))} of the {count(models[0].total, 'trace')} since "
            f"{day(models[0].since)}. v{release.version} was made without: its thresholds are not known to hold there."
        )
        if links:
            places[0].page_link(shell.page("drift"), label="Drift", icon=":material/show_chart:")
            places[1].page_link(shell.page("recalibrate"), label="Recalibrate", icon=":material/autorenew:")

"""One line wherever a threshold is shown: models of today's traffic that the live release does not know."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.report.numbers import count, day, listed, share
from calibrate.report.sentences.watching import live
from calibrate.workflow.releasing.unknown_models import UnknownModel, unknown_models
from calibrate.workflow.watching.new_models import NewModel
from db import Store
from pages import shell
from pages.components.text import middle, plain, visible

MOST = 2  # banners


@shell.cached_read(None, "traces", "releases")
def of_live(store: Store) -> tuple[UnknownModel, ...]:
    """The models that the live release does not know; none where nothing is released."""
    release = next(iter(store.releases.list(limit=1)), None)
    return unknown_models(store, release) if release else ()


def show(store: Store, *, links: bool = True) -> None:
    """Show nothing if the release knows every model, or nothing is released. `links` lead to what can be done."""
    release = next(iter(store.releases.list(limit=1)), None)
    models = of_live(store)
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
            places[0].page_link(shell.page("watch"), label="Watch", icon=":material/show_chart:")
            places[1].page_link(shell.page("recalibrate"), label="Recalibrate", icon=":material/autorenew:")


def show_banner(models: Sequence[NewModel], version: int, *, primary: bool) -> None:
    """Each new model with the labels that it needs, and the way to them; nothing where there is none."""
    for place, model in enumerate(models[:MOST]):
        with st.container(border=True, key=f"new-model-{place}", horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/warning: {plain(live.new_model(model, version), 500)}", width="stretch")
            if st.button(
                "Sample its answers", icon=":material/casino:", key=f"sample-model-{place}",
                type="primary" if primary and not place else "secondary", disabled=not shell.may_open("sample"),
            ):  # fmt: skip
                st.switch_page(shell.page("sample"), query_params={"model": model.seen.name})
    if len(models) > MOST:
        st.caption(f"{count(len(models) - MOST, 'more model')} of today's traffic: see Models under Details.")

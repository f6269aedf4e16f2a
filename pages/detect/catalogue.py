"""Groundedness models of the catalogue: which can be added and how, and one click to run with those that are here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.backends.catalogue import CatalogueEntry, entries
from calibrate.detectors.base import Detector
from calibrate.report.sentences.detection import catalogue as sentences
from calibrate.report.sentences.detection.readiness import setup
from db import Store
from pages.components import run_view
from pages.components.text import plain, spoken

STYLE = """<style>
[class*=st-key-catalogue-row-] {display: grid; grid-template-columns: minmax(14rem, 1.6fr) minmax(5rem, 1fr) 7rem;
  align-items: start; column-gap: 1rem; row-gap: .1rem; border-top: 1px solid rgba(138,143,152,.22); padding: .4rem 0}
[class*=st-key-catalogue-row-] > * {min-width: 0; width: auto !important}
[class*=st-key-catalogue-row-] :is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer]) {
  margin-bottom: 0 !important}
[class*=st-key-catalogue-row-] p {margin: 0; font-size: .875rem}
[class*=st-key-catalogue-row-] > :nth-child(n+4) {grid-column: 1 / -1}
@media (max-width: 900px) {
[class*=st-key-catalogue-row-] {grid-template-columns: auto 1fr}
[class*=st-key-catalogue-row-] > :nth-child(1) {grid-column: 1 / -1}
}
</style>"""


def show(store: Store, scope: Mapping[str, Any]) -> None:
    """List the models below what needs setup, folded: most teams add one of them once."""
    models = entries()
    here = {model.name for model in models if model.directory()}
    with st.expander(sentences.heading(len(models), len(here)), icon=":material/library_add:"):
        st.html(STYLE)
        st.caption(sentences.NOTE)
        st.caption("  \n".join(f"{way}." for way in sentences.ways()))
        for metric, members in sentences.by_metric(models).items():
            st.markdown(f"**{plain(metric)}** &ensp; :gray[published, in percent]")
            with st.container(gap=None):
                for model in sorted(members, key=lambda model: model.name not in here):
                    _row(store, model, scope)


def _row(store: Store, model: CatalogueEntry, scope: Mapping[str, Any]) -> None:
    with st.container(key=f"catalogue-row-{model.name.replace('.', '-')}"):
        st.markdown(f"**{plain(model.name)}** &ensp; :gray[{plain(sentences.size(model))}]")
        st.markdown(plain(sentences.published(model)))
        directory = model.directory()
        why = _detector(model).unavailable() if directory else None
        if directory and not why:
            st.button(
                "Run",
                key=f"catalogue_run_{model.name}",
                icon=":material/play_arrow:",
                help=f"Score the traces with {model.name}",
                on_click=_run,
                args=(store, model, scope),
            )
        else:
            st.markdown(f":gray[{sentences.whereabouts(model, here=directory is not None)}]")
        about = "  \n".join(f"{name}: {plain(value, 300)}" for name, value in sentences.details(model).items())
        st.caption(plain(sentences.line(model), 300), help=about)
        if directory and why:
            st.caption(spoken(setup(why), 400))


def _detector(model: CatalogueEntry) -> Detector:
    return registry.make(model.adapter, {"model": model.name})


def _run(store: Store, model: CatalogueEntry, scope: Mapping[str, Any]) -> None:
    run_view.queue(store, [_detector(model)], scope, None)

"""Scores that were computed elsewhere: what came, which side is suspicious, and the way to import some."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from calibrate.report.numbers import count, number
from calibrate.report.sentences.detection import readiness as ready_words
from calibrate.report.sentences.traces import scores as sentences
from calibrate.types import ExternalDetector, FlagWhen
from calibrate.workflow.detection import external as step
from calibrate.workflow.detection.readiness import Group, Readiness
from db import Store
from pages import shell
from pages.components.text import label, plain
from pages.detect import score_upload

PROBLEM = "detect_imported_problem"
ANSWERS: dict[FlagWhen, str] = {"below": "Low scores", "above": "High scores"}


@shell.cached_read(None, "scores", "traces")
def _waiting(store: Store) -> tuple[step.Undefined, ...]:
    return step.undefined_of(store)


@shell.cached_read(None, "scores")
def _definitions(store: Store) -> dict[str, ExternalDetector]:
    return {detector.name: detector for detector in store.external.all()}


def show(store: Store, rows: Sequence[Readiness]) -> None:
    """The external detectors, those first whose direction nobody has told, and the form to import scores."""
    imported = [row for row in rows if row.group == Group.IMPORTED]
    waiting: tuple[step.Undefined, ...] = _waiting(store)
    shell.show_kept_error(PROBLEM)
    if imported or waiting:
        heading = ready_words.HEADINGS[Group.IMPORTED]
        st.markdown(f"**{heading}** &ensp; :gray[{len(imported) + len(waiting)}]", width="content")
    for place, each in enumerate(waiting):
        _ask(store, each, place)
    definitions: dict[str, ExternalDetector] = _definitions(store)
    for place, row in enumerate(imported):
        _line(row, definitions.get(row.detector.name), place)
    score_upload.show(store)


def _ask(store: Store, waiting: step.Undefined, place: int) -> None:
    """The question that everything else waits for, with what helps to answer it."""
    name = waiting.detector.name
    with st.container(border=True, key=f"detect-undefined-{place}", gap="small"):
        spread = ""
        if waiting.low is not None and waiting.median is not None and waiting.high is not None:
            ends = f"from {number(waiting.low, 3)} to {number(waiting.high, 3)}"
            spread = f", {ends}, half of them up to {number(waiting.median, 3)}"
        st.markdown(f"**{plain(name)}**: {count(waiting.scored, 'trace has', 'traces have')} a score{spread}.")
        st.markdown(sentences.QUESTION)
        with st.container(horizontal=True, gap="small"):
            for side, words in ANSWERS.items():
                key = f"detect_define_{side}_{name}"
                st.button(words, key=key, on_click=_define, args=(store, name, side))


def _define(store: Store, name: str, side: FlagWhen) -> None:
    with shell.errors_kept(PROBLEM):
        step.define_external(store, name, flag_when=side, now=shell.now())


def _line(row: Readiness, definition: ExternalDetector | None, place: int) -> None:
    detector = row.detector
    facts = [ready_words.imported(row), sentences.SIDES[detector.flag_when]]
    if definition is not None:
        facts += [definition.unit] if definition.unit else []
        facts.append(f"since {definition.created_at.date().isoformat()}, by {definition.created_by}")
    with (
        st.container(key=f"detect-cause-imported-{place}", gap=None),
        st.container(horizontal=True, gap="small", vertical_alignment="center"),
    ):
        st.page_link(
            shell.page("detectors"),
            label=label(detector.title, 60),
            query_params={"detector": detector.name},
            help=label(detector.name, 60),
        )
        st.caption(plain(" · ".join(facts), 400))

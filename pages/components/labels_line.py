"""One line wherever a figure stands on labels: how many there are, and what is open among them, with a way to it."""

from __future__ import annotations

import streamlit as st

from calibrate.report.sentences.labelling import labels as sentences
from calibrate.types import Sample
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence import labels_at_hand as step
from calibrate.workflow.evidence.label_counts import LabelCounts, find_gap
from db import Store
from pages import shell
from pages.components.text import plain
from pages.shell.bar.at_hand import EVERYTHING, labels_of

__all__ = ["EVERYTHING", "sample_with_gap", "show", "show_labels", "show_open"]


def show(store: Store, sample: Sample | None, *, name: str = "") -> None:
    """Say which labels the figures below stand on, and what is open among them. `name` stands before the line where a
    page shows several."""
    names = () if sample is None else sample.names
    show_labels(names, labels_of(store, names), name=name)


def show_labels(names: tuple[str, ...], labels: step.LabelsAtHand, *, name: str = "") -> None:
    """The same of labels that are counted already; `names` are of their samples."""
    facts = plain(sentences.facts(labels))
    line = f"**{plain(name, 60)}**: {facts}" if name else facts
    open_ones = _open(labels)
    if open_ones:
        _box(names, labels, line, open_ones)
    else:
        st.caption(line)


def show_open(names: tuple[str, ...], labels: step.LabelsAtHand, *, settle: bool = True) -> None:
    """Say only what is open among the labels; nothing where nothing is. `settle` False: the page leads to the disputes
    already."""
    if open_ones := _open(labels):
        _box(names, labels, open_ones[0], open_ones[1:], settle=settle)


def _open(labels: step.LabelsAtHand) -> list[str]:
    """What undecided labels could change, and which wait."""
    return [f"{plain(sentence[:1].upper() + sentence[1:])}." for sentence in sentences.open_ones(labels)]


def _box(names: tuple[str, ...], labels: step.LabelsAtHand, head: str, rest: list[str], *, settle: bool = True) -> None:
    """A bordered line with the links to where things are settled, and smaller print below it."""
    with st.container(border=True, key="-".join(("labels-line", *names)), gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(head, width="content")
            with st.container(horizontal=True, width="content"):
                _links(labels.counts, names, settle=settle)
        for sentence in rest:
            st.caption(sentence)


def _links(counts: LabelCounts, names: tuple[str, ...], *, settle: bool) -> None:
    of = {"sample": names[0]} if len(names) == 1 else {}
    if counts.disputed and settle:
        where = {"view": "disputed", "sample": EVERYTHING} | of
        st.page_link(shell.page("agreement"), label="Settle disputes", icon=":material/gavel:", query_params=where)
    if counts.waiting and (gap := sample_with_gap(shell.store(), names)):
        where = {"sample": gap, "gap": "first"}
        st.page_link(shell.page("label"), label="Label the gap", icon=":material/check_box:", query_params=where)


def sample_with_gap(store: Store, names: tuple[str, ...]) -> str | None:
    """The first of these samples, or of those that no name stands for, in which labels wait."""
    sample = basis.choose_basis(store, names).sample
    parts = () if sample is None else sample.parts or (sample,)
    return next((part.name for part in parts if find_gap(store, part)), None)

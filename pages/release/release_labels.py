"""The labels behind the points on offer, as they stand now: what is open among them, and what it could change."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.labelling import labels as sentences
from calibrate.workflow.releasing import labels_behind as step
from db import Store
from db.points import SavedPoint
from pages import shell
from pages.components import labels_line
from pages.components.text import plain


@shell.cached_read(None, *shell.EVIDENCE, "points", entries=100)
def behind(store: Store, point: int, _saved: SavedPoint) -> step.LabelsBehind | None:
    """The labels of the saved point of this key."""
    return step.labels_behind(store, _saved)


def show(store: Store, saved: Mapping[str, SavedPoint]) -> None:
    """A line for each set of labels; below it the points whose figures undecided labels could change."""
    points: dict[tuple[str, ...], list[tuple[str, step.LabelsBehind]]] = {}
    for name, point in saved.items():
        if labels := behind(store, point.id, point):
            points.setdefault(labels.samples, []).append((name, labels))
    for samples, members in points.items():
        labels = members[0][1]
        labels_line.show_labels(samples, labels.evidence, name=labels.sample or "All labels")
        for name, labels in members:
            if settled := sentences.settled_point(labels.settled):
                st.caption(f"**{plain(title_of(name))}**: {plain(settled)}.")

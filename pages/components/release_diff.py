"""What a release changes against the live one: on the form, in a proposal, in the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from calibrate.report.names import title_of
from calibrate.report.sentences.releasing import changes as wording
from calibrate.report.sentences.releasing import impact as sentences
from calibrate.thresholds import Change, diff
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.model import ThresholdsFile
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing.impact import DetectorImpact, Impact, impact
from db import Store
from pages import shell
from pages.components.text import plain


def impact_of(store: Store, before: ThresholdsFile, after: ThresholdsFile) -> Impact:
    """What `after` changes for those who act on the flags of `before`."""
    effect = _impact(store, digest_of(history.content(before)), digest_of(history.content(after)), before, after)
    return replace(effect, old=before.version, new=after.version)


@shell.cached_read("Comparing with the live release…", *shell.EVIDENCE, "points")
def _impact(
    store: Store, digest_before: str, digest_after: str, _before: ThresholdsFile, _after: ThresholdsFile
) -> Impact:
    return impact(store, _before, _after)


def show_changes(store: Store, before: ThresholdsFile | None, after: ThresholdsFile) -> Impact | None:
    """What changes against the live release, or what the first one will hold."""
    changes = diff(before, after)
    if before is None:
        st.markdown("**What it will hold**")
        st.markdown("\n".join(f"- {line}" for line in lines_of(changes)))
        return None
    st.markdown(f"**What changes against v{before.version}**")
    effect = impact_of(store, before, after)
    if figures := sentences.a_day(effect):
        for place, (name, moved, apart) in zip(st.columns(len(figures)), figures, strict=True):
            place.metric(name, moved, apart, delta_color="off", delta_arrow="off")
    st.markdown(plain(sentences.summary(effect)))
    rows = {row.detector: row for row in effect.rows}
    st.markdown("\n".join(f"- {line}" for line in lines_of(changes, rows)))
    for check in effect.worse:
        st.warning(plain(f"{sentences.worse(check)}."), icon=":material/trending_down:")
    for check in effect.missing:
        st.caption(f":material/help: {plain(sentences.missing(check).replace('`', ''))}.")
    return effect


def lines_of(changes: Sequence[Change], rows: Mapping[str, DetectorImpact] | None = None) -> list[str]:
    """The changes in Markdown: one line per detector, its measured figures in small print, and one about the labels.

    The figures of `rows` come from the same labels on both sides.
    """
    return [_markdown(line) for line in wording.lines_of(changes, rows)]


def _markdown(line: wording.ChangeLine) -> str:
    if line.name is None:
        return f"Labels: {plain(line.what)}"
    verb = f" {line.verb}" if line.verb else ""
    small = f"  \n:gray[:small[{plain(line.figures)}]]" if line.figures else ""
    return f"**{plain(title_of(line.name))}**{verb}: {plain(line.what)}{small}"

"""The checklist of a saved threshold: a mark and words for each item, and the way to the place where it is mended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import streamlit as st

from calibrate.report.sentences.releasing import checklist as sentences
from calibrate.workflow.releasing.checklist import Checklist, Item, Mark
from pages import shell
from pages.components.text import plain

ICONS = {Mark.PASSED: ":material/check:", Mark.CAUTION: ":material/priority_high:", Mark.FAILED: ":material/block:"}
STYLE = """<style>
[class*=st-key-check-] {display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: .25rem 1rem;
  padding: 0 0 .5rem}
[class*=st-key-check-] > * {min-width: 0; width: auto !important}
[class*=st-key-item-] {border-left: 3px solid rgba(138,143,152,.35); padding-left: .6rem}
[class*=st-key-item-caution-] {border-color: #E69F00}
[class*=st-key-item-failed-] {border-color: #D55E00}
[class*=st-key-item-passed-] {border-color: #0072B2}
[class*=st-key-item-] p {font-size: .875rem; margin: 0; line-height: 1.35}
[class*=st-key-item-] [data-testid=stMarkdownContainer] {margin-bottom: 0 !important}
[class*=st-key-item-] [data-testid=stPageLink-NavLink] {padding: .1rem 0; text-decoration: underline;
  text-underline-offset: 3px}
[class*=st-key-item-] [data-testid=stPageLink-NavLink] [data-testid=stIconMaterial] {display: none}
@media (max-width: 1100px) {[class*=st-key-check-] {grid-template-columns: repeat(2, minmax(0, 1fr))}}
@media (max-width: 640px) {[class*=st-key-check-] {grid-template-columns: minmax(0, 1fr)}}
</style>"""


def show(row: Checklist, now: datetime) -> None:
    """The five items side by side."""
    with st.container(key=f"check-{row.detector}"):
        for item in Item:
            mark = row.marks[item]
            with st.container(key=f"item-{mark}-{item}-{row.detector}", gap=None):
                st.markdown(
                    f"{ICONS[mark]} **{sentences.NAMES[item]}** :gray[· {sentences.WORDS[mark]}]  \n"
                    f"{plain(sentences.words(row, item, now), 700)}"
                )
                # Thresholds share their labels: one line below all of them leads to the disputes.
                if mark != Mark.PASSED and item != Item.DISPUTES:
                    page, word, query = _remedy(row, item)
                    if shell.may_open(page):
                        st.page_link(shell.page(page), label=word, query_params=query)


def _remedy(row: Checklist, item: Item) -> tuple[str, str, Mapping[str, str]]:
    """Where an item is mended: the page, the words of the link, and what to show there."""
    of = {"sample": row.sample} if row.sample else {}
    detector = {"detector": row.detector}
    if item == Item.EVIDENCE:
        return "label", "Label more", of
    if item == Item.COVERAGE:
        return "detectors", "See what it cannot score", detector
    if item == Item.FRESH:
        return ("detect", "Run it again", of) if row.facts.changed else ("sample", "Draw a newer sample", {})
    return "tune", "Choose again", detector | of

"""What a release changes against the live one: on the form, in a proposal, in the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from calibrate.report.numbers import count, number, share
from calibrate.report.sentences import figures as wording
from calibrate.report.sentences import impact as sentences
from calibrate.thresholds import Change, diff
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.changes import describe_guarantee
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Guarantee, Interval
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing.impact import DetectorImpact, Impact, impact
from db import Store
from pages import shell
from pages.components.text import plain, visible


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
    if not changes:
        st.caption(f"Nothing changes against v{before.version}.")
        return None
    st.markdown(f"**What changes against v{before.version}**")
    effect = impact_of(store, before, after)
    st.markdown(plain(sentences.summary(effect)))
    rows = {row.detector: row for row in effect.rows}
    st.markdown("\n".join(f"- {line}" for line in lines_of(changes, rows)))
    for check in effect.worse:
        st.warning(plain(f"{sentences.worse(check)}."), icon=":material/trending_down:")
    for check in effect.missing:
        st.caption(f":material/help: {plain(sentences.missing(check).replace('`', ''))}.")
    return effect


def lines_of(changes: Sequence[Change], rows: Mapping[str, DetectorImpact] | None = None) -> list[str]:
    """The changes in Markdown: one line about the labels, one per detector with its measured figures in small print.

    The figures of `rows` come from the same labels on both sides.
    """
    about: dict[str | None, list[Change]] = {}
    for change in changes:
        about.setdefault(change.detector, []).append(change)
    data = about.pop(None, [])
    lines = [
        line for name, group in about.items() for line in _detector_lines(str(name), group, (rows or {}).get(str(name)))
    ]
    if data:
        lines.append("Labels: " + ", ".join(_moved(_DATA.get(c.field, c.field), _values_in_words(c)) for c in data))
    return lines


_DATA = {
    "data.sample": "sample", "data.design": "design", "data.samples": "samples", "data.n": "number",
    "data.positives": "hallucinated",
    "data.models": "models", "data.label_set_digest": "digest", "baselines": "baselines",
}  # fmt: skip
_FIGURES = {
    "precision": "precision", "recall": "recall", "fpr": "false-positive rate", "flag_rate": "flag rate",
    "coverage": "coverage",
}  # fmt: skip


def _detector_lines(name: str, changes: Sequence[Change], row: DetectorImpact | None) -> Iterator[str]:
    if changes[0].field == "detector":
        new = changes[0].before is None
        word = "comes in" if new else "leaves"
        yield f"**{plain(name)}** {word}: {plain(str(changes[0].after if new else changes[0].before))}"
        return
    rules = [_moved(c.field.replace("params.", ""), _values_in_words(c)) for c in changes if c.field not in _FIGURES]
    paired = row.check.paired if row and row.check else None
    if row and paired:
        words = ("precision", "recall", "flags a day")
        sides = zip(words, sentences.side(row, new=False)[1:], sentences.side(row, new=True)[1:], strict=True)
        measured = [_moved(word, (before, after)) for word, before, after in sides]
        measured.append(f"both on the same {count(paired.n)} labels")
    else:
        measured = [_moved(_FIGURES[c.field], _values_in_words(c)) for c in changes if c.field in _FIGURES]
    small = f"  \n:gray[:small[{', '.join(measured)}]]" if measured else ""
    yield f"**{plain(name)}**: {', '.join(rules) or 'same threshold, measured anew'}{small}"


def _moved(name: str, values: tuple[str, str]) -> str:
    return f"{plain(name.replace('_', ' '))} {plain(values[0])} → {plain(values[1])}"


def _values_in_words(change: Change) -> tuple[str, str]:
    """Both values as text."""
    before, after = (_value(value, change.field) for value in (change.before, change.after))
    return before, after


def _value(value: Any, field: str) -> str:
    if isinstance(value, Interval):
        return share(value.value)
    if isinstance(value, Guarantee):
        return describe_guarantee(value)
    if field == "policy":
        return wording.saved_policy_in_words(value)
    if isinstance(value, float):
        return f"{number(value)}"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else visible(str(value), 80)

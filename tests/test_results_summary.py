"""What the results page says at its top follows from its own tables, by the rule that it states."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import results_summary as summary  # noqa: E402

MADE = "<!-- made with bleu 2, rouge_l 2, token_overlap 2 -->"
RANKS = "| token_overlap | 90 | 100% | .70 (.60–.80) | .5 | | 9 |"


def section(*rows: str) -> str:
    return "\n".join([MADE, RANKS, summary.HEAD, summary.COLUMNS, *rows])


def beside(name: str, over: str, together: str) -> str:
    return f"| {name} | 90 | {over} | {together} |"


UP, DOWN, EITHER = "+.050 (+.010 to +.090)", "−.050 (−.090 to −.010)", "+.050 (−.010 to +.110)"


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((UP, EITHER), (EITHER, UP), "Worth running without a model:** `token_overlap` and `rouge_l`"),
        ((UP, UP), (DOWN, EITHER), "Sometimes worth it without a model:** `rouge_l`"),
        ((EITHER, EITHER), (DOWN, DOWN), "Without a model, these add nothing beyond word overlap:** `rouge_l`"),
    ],
)
def test_the_verdict_follows_from_the_intervals(first: tuple[str, str], second: tuple[str, str], verdict: str) -> None:
    sections = {"a": section(beside("rouge_l", *first)), "b": section(beside("rouge_l", *second))}
    assert f"**{verdict}." in summary.top(sections)


def test_nothing_is_said_where_a_comparison_is_owed() -> None:
    old = "| rouge_l | 90 | 100% | .70 (.60–.80) | .5 | | 9 |\n" + RANKS
    sections = {"a": section(beside("rouge_l", EITHER, EITHER)), "b": old}
    assert summary.outdated(sections) == ["b"]
    assert "nothing is said:** `rouge_l`." in summary.top(sections)


def test_two_detectors_together_are_judged_out_of_fold() -> None:
    """Noise adds nothing to a good score, and an independent second view adds something."""
    rng = np.random.default_rng(3)
    labels = rng.random(600) < 0.4
    good, second, noise = (shift * labels + rng.normal(size=600) for shift in (1.0, 1.0, 0.0))
    units = np.arange(600)
    alone = roc_auc_score(labels, good)
    assert roc_auc_score(labels, summary._together(np.column_stack([good, second]), labels, units, 1)) > alone + 0.04
    assert roc_auc_score(labels, summary._together(np.column_stack([good, noise]), labels, units, 1)) < alone + 0.005


def test_the_page_says_what_its_tables_say() -> None:
    page = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    titles = re.split(r"\n## ", page)[1:]
    sections = {part.partition("\n")[0]: f"## {part.strip()}" for part in titles}
    for title in ("Which detectors are worth running", "How to read the tables"):
        sections.pop(title)
    assert summary.top(sections) in page

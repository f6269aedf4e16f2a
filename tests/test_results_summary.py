"""What the results page says at its top follows from its own tables, by the rule that it states."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import results_parts as parts  # noqa: E402
import results_plumbing as plumbing  # noqa: E402
import results_summary as summary  # noqa: E402

from calibrate.workflow.tuning.worth import packaged, read_packaged  # noqa: E402

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
        (
            (UP, EITHER),
            (EITHER, UP),
            "Worth running without a model:** `token_overlap` (the baseline itself) and `rouge_l`",
        ),
        ((UP, UP), (DOWN, EITHER), "Sometimes worth it without a model:** `rouge_l`"),
        ((EITHER, EITHER), (DOWN, DOWN), "Without a model, these add nothing beyond word overlap:** `rouge_l`"),
    ],
)
def test_the_verdict_follows_from_the_intervals(first: tuple[str, str], second: tuple[str, str], verdict: str) -> None:
    sections = {"a": section(beside("rouge_l", *first)), "b": section(beside("rouge_l", *second))}
    assert f"**{verdict}." in summary.top(sections)


def test_within_a_verdict_the_largest_lead_comes_first() -> None:
    """Better and adding on two sets is a lead of 4; adding on two and worse on one is 1."""
    rows = [beside("bleu", DOWN, UP), beside("bleu", EITHER, UP)], [beside("rouge_l", UP, UP)] * 2
    sections = {
        at: "\n".join([MADE, RANKS, summary.HEAD, summary.COLUMNS, first, second])
        for at, first, second in zip("ab", *rows, strict=True)
    }
    text = summary.top(sections)
    assert "`token_overlap` (the baseline itself), `rouge_l` and `bleu`." in text
    assert text.index("| rouge_l | 2 |") < text.index("| bleu | 2 |")
    assert {name: row["lead"] for name, row in summary.measured(sections).items()} == {
        "token_overlap": 2,
        "rouge_l": 4,
        "bleu": 1,
    }


def test_the_table_of_adapters_does_not_flatter_them() -> None:
    text = plumbing.section()
    assert "`judge_template` (12 of 12) failed on traces" in text
    assert "a ModernBERT of random weights | 24 | 24 | 0 | 0 | 100% | not shown: random weights |" in text


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
    for title in (
        "Which detectors are worth running",
        "Who leads, and by how much",
        "How to read the tables",
        plumbing.TITLE,
    ):
        sections.pop(title)
    assert summary.top(sections) in page
    rows = {name: read_packaged(row) for name, row in summary.measured(sections).items()}
    assert packaged() == rows, "the Detect page reads what the page says: python docs/make_results.py --page"


def test_the_page_is_put_together_from_its_parts() -> None:
    page = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    files = sorted(parts.FOLDER.glob("*.json"))
    assert len(files) == 12
    for name, pieces in parts.load([json.loads(path.read_text(encoding="utf-8"))["set"] for path in files]).items():
        text = parts.section(pieces)
        assert f"\n{text}\n" in page
        assert parts.split(text) == pieces, name
    assert page.endswith(f"{plumbing.section()}\n")


def test_figures_made_again_keep_the_speeds_of_before() -> None:
    head = "| detector | n | traces/s |\n|---|--:|--:|\n"
    before = {"table": f"{head}| bleu | 90 | 41 |\n| answer length | 90 |  |"}
    again = {"table": f"{head}| rouge_l | 91 | 7 |\n| bleu | 91 | 9 |\n| answer length | 91 |  |"}
    table = parts.with_speeds_of(before, again)["table"]
    assert table == f"{head}| rouge_l | 91 |  |\n| bleu | 91 | 41 |\n| answer length | 91 |  |"


def test_what_ranks_only_models_is_no_gain() -> None:
    rows = section(beside("rouge_l", UP, UP))
    only = f"{parts.HEAD}: 2 models.\n\n| rouge_l | 90 | .80 (.70–.90) | .50 (.40–.60) | .30 (.20–.40) | model |\n\n"
    assert summary.measured({"a": rows, "b": rows})["rouge_l"] == {
        "worth": "run",
        "gains": 2,
        "sets": 2,
        "by_chance": 0,
        "lead": 4,
    }
    sections = {"a": rows.replace(summary.HEAD, only + summary.HEAD), "b": rows}
    assert summary.measured(sections)["rouge_l"]["worth"] == "sometimes"


def test_who_leads_names_every_set_and_the_answering_model() -> None:
    leader = (
        "ROUGE-L leads with an AUROC of 0.79, 95% 0.72–0.84 (9 of 9 labels scored). Over the next best, Token overlap: "
        "+0.015, 95% −0.057 to +0.087 (9 labels that both scored), better. Over the baseline word overlap: +0.2, 95% "
        "+0.1 to +0.3 (9). Over the baseline answer length: +0.1, 95% +0.0 to +0.2 (9)."
    )
    whole = leader + " Over the baseline answering model: +0.050, 95% −0.010 to +0.110 (9)."
    again = f"{parts.QUICK} ROUGE-L over the baseline answering model: +0.050, 95% −0.010 to +0.110 (9 labels)."
    row = (
        "| ROUGE-L | 0.79 (0.72–0.84) | Token overlap: +0.015 (−0.057 to +0.087) | answer length: +0.1 (+0.0 to +0.2) |"
    )
    end = " +0.050 (−0.010 to +0.110) |"
    table = parts.leaders({"a": {"leader": whole}, "b": {"leader": leader, "identity": again}, "c": {}})
    assert f"| a {row}{end}" in table
    assert f"| b {row}{end}" in table
    assert "| c | nobody |" in table

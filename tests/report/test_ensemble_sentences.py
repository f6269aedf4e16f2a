"""Sentences about ensembles claim no more than their interval."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from calibrate.report.sentences.tuning.ensembles import comparison, difference_words, joint_sentence, notes
from calibrate.stats.ensembles.combine import FEW, Recipe
from calibrate.stats.ensembles.joint import Joint
from calibrate.types import Interval

RECALL, BEST = Interval(0.34, 0.22, 0.48), Interval(0.30, 0.2, 0.42)


@pytest.mark.parametrize(
    ("difference", "says"),
    [
        (Interval(0.04, -0.06, 0.13), "+4 points (−6 to +13), is within its interval: the ensemble is not shown to be"),
        (Interval(0.14, 0.01, 0.27), "+14 points (+1 to +27), is beyond its interval: the ensemble finds more"),
        (Interval(-0.11, -0.2, -0.02), "−11 points (−20 to −2), is beyond its interval: the ensemble finds less"),
        (Interval(0.04), "too few to compare"),
    ],
)
def test_better_is_said_only_beyond_the_interval(difference: Interval, says: str) -> None:
    said = " ".join(comparison(0.05, RECALL, "rouge_l", BEST, difference, positives=62))
    assert said.startswith(
        "Flags 5% of traffic and finds about 34% (22–48) of hallucinations (62 labelled); "
        "the single detector that ranks best in each fold (AUROC), ROUGE-L on all labels, finds 30% (20–42)."
    )
    assert says in said
    assert ("finds more" in said) == (difference.low is not None and difference.low > 0)


def test_what_flags_nothing_or_is_unknown_is_said_to_be() -> None:
    assert comparison(0.0, RECALL, "x", BEST, Interval(0.0), positives=3)[0].startswith("Flags nothing")
    assert "is unknown" in comparison(0.05, Interval(None), "x", BEST, Interval(None), positives=0)[1]
    assert "unknown" in joint_sentence(Joint(1, Interval(None)), "abc", 0.05)


def test_one_point_is_one_point_and_zero_has_no_sign() -> None:
    assert difference_words(Interval(0.01, -0.02, 0.04)) == "+1 point (−2 to +4)"
    assert difference_words(Interval(0.03, 0.0021, 0.05)) == "+3 points (+0.2 to +5.0)"
    assert difference_words(Interval(-0.03, -0.05, -0.0003)) == "−3 points (−5.00 to −0.03)"
    assert difference_words(Interval(0.03, -0.0021, 0.05)) == "+3 points (0 to +5)"


def test_the_joint_rate_has_its_interval() -> None:
    found = Joint(1, Interval(0.145, 0.11, 0.19))
    assert joint_sentence(found, ("nli", "bleu"), 0.05) == (
        "Were NLI and BLEU precision each to flag 5% of traffic, at least one would flag 14% (11–19%) of clean traces."
    )


def report_with(**changes: Any) -> Any:
    """What `notes` reads of a report."""
    figures = {
        "recipe": Recipe("logistic"), "positives": 62, "n": 300, "budget": 0.05, "prevalence": Interval(0.02),
        "each": {"a": 0.5}, "coverage": {"a": 1.0},
        "gathered": SimpleNamespace(from_labels=False, traffic=SimpleNamespace(n=59, window=59)),
        "picks": None,
    }  # fmt: skip
    return SimpleNamespace(**{**figures, **changes})


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({}, []),
        ({"positives": FEW - 1, "recipe": Recipe("k_of_n", k=1)}, ["of 300 labels are hallucinated: one more or less"]),
        ({"positives": FEW - 1}, ["of 300 labels are hallucinated", "a logistic fit chases noise: this is the mean"]),
        (
            {"prevalence": Interval(0.2, 0.1, 0.3)},
            ["About 20% (10–30%) of the traffic is hallucinated: flagging 5% of it finds at best 25% or so of the"],
        ),
        (
            {"recipe": Recipe("k_of_n", k=1, thresholds={"a": 0.4})},
            ["labels chose them, the figures flatter"],
        ),
        (
            {"gathered": SimpleNamespace(from_labels=True, traffic=SimpleNamespace(n=29, window=1259))},
            ["asked about only 29 of 1,259 traces, so the cut is read from the 300 labels"],
        ),
        (
            {"each": {"a": 0.5, "b": None}},
            ["b alone cannot flag as little as 5%: more share its most"],
        ),
        ({"coverage": {"a": 0.31, "b": 0.9}}, ["a can score only 31% of the traffic."]),
    ],
)
def test_each_note_is_there_when_it_applies_and_only_then(changes: dict[str, Any], texts: list[str]) -> None:
    written = notes(report_with(**changes))
    assert len(written) == len(texts)
    for note, text in zip(written, texts, strict=True):
        assert text in note

"""What a page says of a threshold is true, and has its n near it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrate.stats.policies import choose, parse
from calibrate.stats.sweep import sweep
from calibrate.stats.wording import cautions, percent, sentence
from calibrate.types import Interval, OperatingPoint

POINT = OperatingPoint(
    detector="d",
    flag_when="above",
    threshold=0.5,
    policy="precision>=0.7",
    feasible=True,
    precision=Interval(0.71, 0.58, 0.81),
    recall=Interval(0.44, 0.31, 0.58),
    fpr=Interval(0.01, 0.0, 0.02),
    flag_rate=Interval(0.031, 0.02, 0.05),
    n=300,
    positives=100,
    true_positives=60,
    false_positives=24,
    false_negatives=40,
    true_negatives=176,
    coverage=1.0,
)


def test_the_sentence_says_what_is_known() -> None:
    assert sentence(POINT, 262.4) == (
        "Flags 3.1% of traffic, about 260 a day. Of what it flags, 71% was hallucinated "
        "(95% interval 58–81%, 84 labels flagged). It finds about 44% (31–58) of all hallucinations "
        "(100 hallucinated labels). Measured on the same 300 labels that chose it, not certified: "
        "expect it to do somewhat worse on new traffic."
    )
    assert cautions(POINT) == []


@pytest.mark.parametrize(
    ("flags", "says"),
    [(0.2, "less than one a day"), (3.4, "about 3 a day"), (47.6, "about 48 a day"), (12_345, "about 12,000 a day")],
)
def test_flags_a_day_are_rounded_to_what_an_estimate_is_worth(flags: float, says: str) -> None:
    assert f"of traffic, {says}." in sentence(POINT, flags)
    assert "a day" not in sentence(POINT)


def test_an_unmet_policy_comes_first() -> None:
    point = replace(POINT, feasible=False, why="no threshold reaches precision 0.90; the best is 0.71 at 0.5")
    assert sentence(point).startswith("No threshold reaches precision 0.90; the best is 0.71 at 0.5. Flags 3.1%")


def test_by_hand_is_not_said_to_be_chosen_by_labels() -> None:
    said = sentence(replace(POINT, policy="manual:0.5"))
    assert said.endswith("Set by hand; measured on 300 labels, not certified.")


def test_what_is_unknown_is_said_to_be_unknown() -> None:
    nothing = sentence(choose(sweep([], []), parse("manual:1")), 10)
    assert "How much it flags is unknown: there are no labels." in nothing
    too_strict = sentence(choose(sweep([1, 0], [1.0, 0.0]), parse("manual:5")))
    assert "Its precision is unknown: none of the 2 labels is flagged." in too_strict
    clean = sentence(choose(sweep([0, 0], [1.0, 0.0]), parse("manual:1")))
    assert "How many hallucinations it finds is unknown: none is labelled." in clean


def test_cautions_name_few_positives_and_missing_scores() -> None:
    said = cautions(replace(POINT, positives=1, true_negatives=170))
    assert said[0].startswith("Only 1 hallucinated label: ")
    assert said[1].startswith("6 of 300 labelled traces could not be scored")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (0.0002, "under 0.1%"),
        (0.031, "3.1%"),
        (0.0996, "10%"),
        (0.714, "71%"),
        (0.997, "over 99%"),
        (1, "100%"),
    ],
)
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text

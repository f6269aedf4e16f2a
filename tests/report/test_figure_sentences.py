"""What a page says of a threshold is true, and has its n near it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from calibrate.report.sentences.tuning import point_state
from calibrate.report.sentences.tuning.figures import cautions, interval, missing, sentence, why
from calibrate.stats.choosing.choose import choose, choose_bounded
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import (
    Guarantee,
    Interval,
    OperatingPoint,
    PointState,
    PointVerdict,
    StateReason,
    Unmet,
    UnmetReason,
)

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
        "expect it to do somewhat worse on new traffic. "
        "Thresholds chosen so on labels like these are truly below 70% about as often as not."
    )
    assert cautions(POINT) == []


@pytest.mark.parametrize(("chance", "says"), [(0.41, "about 40%"), (0.004, "under 5%"), (0.99, "over 95%")])
def test_a_measured_precision_has_its_chance_of_being_wrong(chance: float, says: str) -> None:
    said = sentence(POINT, chance=chance)
    assert said.endswith(f"Thresholds chosen so on labels like these are truly below 70% in {says} of cases.")
    assert "truly below" not in sentence(replace(POINT, policy="f-beta:1"), chance=chance)
    unmet = replace(POINT, feasible=False, why=Unmet(UnmetReason.PRECISION))
    assert sentence(unmet, chance=chance).endswith("the same 300 labels that chose it, not certified.")


CERTIFIED = Guarantee("certified", 0.7, 0.95, 0.71, 84, 68, "fresh")
TESTED = "tested so that at most 5% of such certificates are wrong, for the traffic drawn from"
REST = "It finds about 44% (31–58) of all hallucinations (100 hallucinated labels)."


def test_a_certified_point_says_what_is_certain_and_from_what() -> None:
    point = replace(POINT, guarantee=CERTIFIED)
    assert sentence(point, 262.4, drawn="this week") == (
        "Flags 3.1% of traffic, about 260 a day. Of what it flags, at least 70% is hallucinated "
        f"({TESTED}; 84 labels drawn this week). {REST}"
    )
    assert "; 84 labels drawn for it)" in sentence(point)
    # None of the first labels is flagged: the fresh ones still say what they say.
    bare = replace(
        point, true_positives=0, false_positives=0, precision=Interval(None), recall=Interval(0.0, 0.0, 0.04)
    )
    assert sentence(bare) == (
        "Flags 3.1% of traffic. Of what it flags, at least 70% is hallucinated "
        f"({TESTED}; 84 labels drawn for it). "
        "It found 0 of 100 hallucinated labels (95% interval 0–4% of all hallucinations)."
    )


def test_a_bounded_point_says_whose_labels_judged_it() -> None:
    point = replace(POINT, guarantee=Guarantee("bounded", 0.7, 0.95, 0.702, 84, 66))
    assert sentence(point) == (
        "Flags 3.1% of traffic. Of what it flags, at least 70% is hallucinated "
        f"(approximate 95% bound, on the same 300 labels that chose it, 84 of them flagged). {REST}"
    )
    unmet = sentence(choose_bounded(sweep([1, 0, 1], [3.0, 2.0, 1.0]), parse("precision>=0.5")))
    assert unmet.startswith(
        "No threshold flags 20 labels; all together there are 3: label more. Flags 100% of traffic."
    )
    assert "at least" not in unmet


def test_a_target_is_never_rounded_up() -> None:
    odd = replace(POINT, guarantee=replace(CERTIFIED, target=0.7295, confidence=0.975))
    assert "at least 72.95% is hallucinated (tested so that at most 2.5% of such certificates are wrong," in sentence(
        odd
    )
    assert "truly below 72.95%" in sentence(replace(POINT, policy="precision>=0.7295"))


@pytest.mark.parametrize("policy", ["precision>=0.7", "recall>=0.9", "f1", "cost:fa=1,miss=20", "elbow", "manual:3"])
def test_one_label_of_each_kind_is_said_in_good_grammar(policy: str) -> None:
    said = sentence(choose(sweep([1, 0], [3.0, 1.0]), parse(policy)))
    assert "Of what it flags, 100% was hallucinated (95% interval 21–100%, 1 label flagged)." in said
    assert "It finds about 100% (15–100) of all hallucinations (1 hallucinated label)." in said
    assert "2 labels" in said


def test_nothing_flagged_is_not_said_to_be_no_traffic() -> None:
    said = sentence(choose(sweep([1, 0], [1.0, 0.0]), parse("manual:5")), 3.0)
    assert said.startswith("Flags 0 of 2 labelled traces (95% interval 0–66% of traffic), about 3 a day.")
    assert "It found 0 of 1 hallucinated label (95% interval 0–85% of all hallucinations)." in said


@pytest.mark.parametrize(
    ("flags", "says"),
    [(0.2, "less than one a day"), (3.4, "about 3 a day"), (47.6, "about 48 a day"), (12_345, "about 12,000 a day")],
)
def test_flags_a_day_are_rounded_to_what_an_estimate_is_worth(flags: float, says: str) -> None:
    assert f"of traffic, {says}." in sentence(POINT, flags)
    assert "a day" not in sentence(POINT)


def test_an_unmet_policy_comes_first() -> None:
    point = replace(POINT, feasible=False, policy="precision>=0.9", why=Unmet(UnmetReason.PRECISION))
    assert sentence(point).startswith(
        "No threshold reaches a precision of 90%; the best is 71% at 0.5 (84 labels flagged). Flags 3.1%"
    )


@pytest.mark.parametrize(
    ("policy", "unmet", "text"),
    [
        ("precision>=0.7105", Unmet(UnmetReason.PRECISION), "a precision of 71.05%; the best is 71.00% at 0.5"),
        (
            "recall>=0.9",
            Unmet(UnmetReason.RECALL),
            "no threshold reaches a recall of 90%; the most is 44% at 0.5 (only 100 of 100 hallucinated labels have",
        ),
        (
            "cost:fa=60,miss=3",
            Unmet(UnmetReason.COST, best=3.5, instead=2.0),
            "flagging nothing costs 2 a trace, the cheapest threshold, 0.5, costs 3.5",
        ),
        (
            "alerts<=5/day",
            Unmet(UnmetReason.ALERTS, best=20.4),
            "keeps to 5 a day; the strictest, the traffic's most suspicious score 0.5, flags about 20",
        ),
        ("precision>=0.7", Unmet(UnmetReason.FEW_FLAGGED), "no threshold flags 20 labels; all together there are 84"),
        (
            "precision>=0.9",
            Unmet(UnmetReason.BOUND, best=0.62),
            "at the strictest threshold with 20 flagged labels, 0.5, precision is 71% and only 62% is sure; label "
            "more, or lower the target of 90%",
        ),
        ("precision>=0.9", Unmet(UnmetReason.POLICY), "no threshold meets precision>=0.9"),
    ],
)
def test_an_unmet_policy_names_what_the_nearest_threshold_reaches(policy: str, unmet: Unmet, text: str) -> None:
    assert text in (why(replace(POINT, policy=policy, feasible=False, why=unmet)) or "")


def test_a_point_that_meets_its_policy_has_no_reason() -> None:
    assert why(POINT) is None
    assert why(replace(POINT, policy="manual:0.5")) is None


@pytest.mark.parametrize(
    ("labels", "scores", "text"),
    [
        ([], [], "no labels: label some traces first"),
        ([0] * 12, [1.0] * 12, "all 12 labels are clean: label some hallucinated traces"),
        ([1] * 3, [1.0] * 3, "all 3 labels are hallucinated: label some clean traces"),
        ([0, 1], [math.nan] * 2, "none of the 2 labelled traces has a score: run the detector"),
        ([0, 0, 1], [1.0, 2.0, math.nan], "none of the 1 hallucinated trace has a score"),
        ([0, 0, 1], [math.nan, math.nan, 3.0], "none of the 2 clean traces has a score"),
    ],
)
def test_what_is_missing_comes_with_its_remedy(labels: list[int], scores: list[float], text: str) -> None:
    assert (missing(sweep(labels, scores)) or "").startswith(text)
    by_hand = choose(sweep(labels, scores), parse("manual:1"))
    assert (why(by_hand) or "").startswith(text)


def test_by_hand_is_not_said_to_be_chosen_by_labels() -> None:
    said = sentence(replace(POINT, policy="manual:0.5"))
    assert said.endswith("Set by hand; measured on 300 labels, not certified.")


def test_what_is_unknown_is_said_to_be_unknown() -> None:
    nothing = sentence(choose(sweep([], []), parse("manual:1")), 10)
    assert nothing == (
        "No labels: label some traces first; a sweep needs hallucinated and clean ones. "
        "How much it flags is unknown: there are no labels. "
        "How many hallucinations it finds is unknown: none is labelled."
    )
    too_strict = sentence(choose(sweep([1, 0], [1.0, 0.0]), parse("manual:5")))
    assert "Its precision is unknown: none of the 2 labels is flagged." in too_strict
    clean = sentence(choose(sweep([0, 0], [1.0, 0.0]), parse("manual:1")))
    assert "How many hallucinations it finds is unknown: none is labelled." in clean


def test_cautions_name_few_positives_and_missing_scores() -> None:
    said = cautions(replace(POINT, positives=1, true_negatives=170))
    assert said[0].startswith("Only 1 hallucinated label: ")
    assert said[1].startswith("6 of 300 labelled traces could not be scored")


def test_what_was_not_run_is_told_from_what_could_not_be_scored() -> None:
    unscored = replace(POINT, true_negatives=170)
    ran, scored = cautions(unscored, not_run=4)
    name = POINT.detector
    assert ran.startswith(f"{name} was not run on 4 of 300 labelled traces (detect {name}); until it is, ")
    assert scored.startswith("2 of 300 labelled traces could not be scored")
    assert [line.split(" (")[0] for line in cautions(unscored, not_run=6)] == [
        f"{name} was not run on 6 of 300 labelled traces"
    ]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.581, 0.812, "58–81%"), (0.0, 0.04, "0–4%"), (0.002, 0.0061, "0.2–0.6%"), (0.0, 0.0004, "0–0.1%"),
     (0.0, 0.0, "0–0%"), (0.0005, 0.0096, "0–1%"), (1.0, 1.0, "100–100%")],
)  # fmt: skip
def test_an_interval_below_one_percent_has_tenths(low: float, high: float, words: str) -> None:
    assert interval(Interval(low, low, high)) == words


def test_a_precision_just_below_its_target_does_not_read_as_if_it_reached_it() -> None:
    state = PointState(
        PointVerdict.DO_NOT_RELEASE, StateReason.BELOW_TARGET, 0.7, Interval(0.6983, 0.58, 0.8), flagged=63, hits=44
    )
    assert "at 69.8% (58–80%), below its target of 70%: 44 of 63" in point_state.sentence(state)

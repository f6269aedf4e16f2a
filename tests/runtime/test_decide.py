"""From scores to decisions, at the edges."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput, BadThresholds
from calibrate.orientation import flags
from calibrate.runtime import Decision, OnMissing, decide, load
from calibrate.thresholds import write
from tests.thresholds.make import entry, release

FILE = release(
    {
        "rouge_l": entry(0.3, "below", "signal"),
        "entropy_z": entry(2.5, "above", "signal"),
        "grounding": entry(0.52, "below", "page"),
        "retired": entry(0.5, "above", "off"),
    }
)
RULES = ("rouge_l", "entropy_z", "grounding")
CLEAN = {"rouge_l": 0.9, "entropy_z": 0.0, "grounding": 0.9}


def test_nothing_flags() -> None:
    names = ("entropy_z", "grounding", "rouge_l")
    assert decide(FILE, CLEAN) == Decision((), "off", "ACCEPT", (), 2, names, (), ())


def test_one_flag_is_review_two_are_reject() -> None:
    one = decide(FILE, {**CLEAN, "grounding": 0.41})
    assert (one.flags, one.tier, one.verdict) == (("grounding",), "page", "REVIEW")
    assert one.reasons == ("grounding 0.41 ≤ 0.52",)
    two = decide(FILE, {**CLEAN, "entropy_z": 3, "rouge_l": 0.1})
    assert (two.flags, two.tier, two.verdict) == (("entropy_z", "rouge_l"), "signal", "REJECT")
    assert two.reasons == ("entropy_z 3 ≥ 2.5", "rouge_l 0.1 ≤ 0.3")


@pytest.mark.parametrize("order", [1, -1])
def test_the_most_severe_tier_counts_in_any_order(order: int) -> None:
    scores = dict([("grounding", 0.0), ("rouge_l", 0.0), ("entropy_z", 9.0)][::order])
    assert decide(FILE, scores).tier == "page"


@pytest.mark.parametrize(("name", "edge"), [("rouge_l", 0.3), ("entropy_z", 2.5)])
def test_a_score_equal_to_the_threshold_flags(name: str, edge: float) -> None:
    toward = math.inf if name == "rouge_l" else -math.inf
    assert decide(FILE, {**CLEAN, name: edge}).flags == (name,)
    assert decide(FILE, {**CLEAN, name: math.nextafter(edge, toward)}).flags == ()


@pytest.mark.parametrize("absent", [None, math.nan, np.float64("nan"), np.float32("nan")])
def test_no_score_is_no_flag_and_is_listed(absent: float | None) -> None:
    decision = decide(FILE, {"entropy_z": absent, "grounding": 0.1})
    assert decision.missing == ("entropy_z", "rouge_l")
    assert decision.scored == ("grounding",)
    assert decision.flags == ("grounding",)


def test_nothing_scored_is_no_acceptance_and_is_said() -> None:
    decision = decide(FILE, {})
    assert (decision.verdict, decision.flags, decision.tier, decision.unscored) == ("REVIEW", (), "off", True)
    assert decision.reasons == ("nothing was scored: entropy_z, grounding, rouge_l gave no number",)


@pytest.mark.parametrize("scores", [{}, dict.fromkeys(RULES), {"rouge_l": math.nan}, {"zeta": 1.0}])
@pytest.mark.parametrize(("on_missing", "verdict"), [("accept", "ACCEPT"), ("review", "REVIEW"), ("reject", "REJECT")])
def test_who_calls_says_what_becomes_of_an_unscored_answer(
    scores: dict[str, float | None], on_missing: OnMissing, verdict: str
) -> None:
    decision = decide(FILE, scores, on_missing=on_missing)
    assert (decision.verdict, decision.unscored, decision.missing) == (verdict, True, tuple(sorted(RULES)))
    assert decision.reasons[0].startswith("nothing was scored: ")


@pytest.mark.parametrize("on_missing", ["accept", "review", "reject"])
def test_one_score_is_enough_for_a_decision(on_missing: OnMissing) -> None:
    decision = decide(FILE, {"rouge_l": 0.9}, on_missing=on_missing)
    assert (decision.verdict, decision.unscored, decision.missing) == ("ACCEPT", False, ("entropy_z", "grounding"))


def test_what_was_not_to_be_scored_is_not_unscored() -> None:
    decision = decide(FILE, {}, skipped=RULES)
    assert (decision.verdict, decision.unscored, decision.missing) == ("ACCEPT", False, tuple(sorted(RULES)))
    half = decide(FILE, {}, skipped=["rouge_l"], on_missing="reject")
    assert (half.verdict, half.unscored) == ("REJECT", True)
    assert half.reasons == ("nothing was scored: entropy_z, grounding gave no number",)


def test_a_release_that_never_flags_leaves_nothing_unscored() -> None:
    decision = decide(release({"retired": entry(tier="off")}), {})
    assert (decision.verdict, decision.unscored) == ("ACCEPT", False)


@pytest.mark.parametrize("wrong", ["REVIEW", "flag", None, True, ["review"]])
def test_on_missing_is_one_of_three(wrong: object) -> None:
    with pytest.raises(BadInput, match=r"on_missing cannot be .*; it is one of accept, review, reject"):
        decide(FILE, CLEAN, on_missing=wrong)  # type: ignore[arg-type]


def test_unknown_names_are_ignored_and_listed() -> None:
    decision = decide(FILE, {**CLEAN, "zeta": 1e9, "alpha": "not even a number"})  # type: ignore[dict-item]
    assert (decision.verdict, decision.unknown) == ("ACCEPT", ("alpha", "zeta"))


@pytest.mark.parametrize("beyond", [math.inf, -math.inf, np.float32("inf"), 10**400, -(10**400)])
def test_what_is_beyond_any_number_is_no_score(beyond: float) -> None:
    nothing = decide(FILE, {"rouge_l": beyond, "entropy_z": beyond})
    assert (nothing.flags, nothing.scored, nothing.verdict) == ((), (), "REVIEW")
    assert nothing.unscored
    assert set(nothing.missing) >= {"rouge_l", "entropy_z"}
    assert decide(FILE, {**CLEAN, "rouge_l": beyond}).missing == ("rouge_l",)


def test_a_score_outside_its_range_is_compared_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    ranged = {"in_percent": {"low": 0, "high": 1}, "open": {"low": 0}, "foreign": {"low": True, "high": [1]}}
    file = release({name: entry(0.3, extra={"x-range": span}) for name, span in ranged.items()})
    for _ in range(3):
        assert decide(file, {"in_percent": 31.0, "open": 31.0, "foreign": 31.0}).scored == tuple(sorted(ranged))
        assert decide(file, {"in_percent": 1.00000001, "open": -0.00000001}).scored == ("in_percent", "open")
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("the score 31 of in_percent cannot be, it is from 0 to 1: is it in another unit?")


def test_tier_off_is_not_asked() -> None:
    decision = decide(FILE, {**CLEAN, "retired": 0.99})
    assert decision.verdict == "ACCEPT"
    for names in (decision.flags, decision.scored, decision.missing, decision.unknown):
        assert "retired" not in names
    assert decide(release({"retired": entry(tier="off")}), {"retired": 0}).reasons == ()


@pytest.mark.parametrize(
    ("bad", "kind"),
    [(True, "a bool"), ("0.4", "a text"), ([0.4], "a list"), (1j, "a complex"), (np.bool_(True), "a bool")],
)
def test_a_wrong_type_is_the_callers_fault(bad: object, kind: str) -> None:
    with pytest.raises(BadInput, match=f"the score of rouge_l is {kind}.*: give a number"):
        decide(FILE, {**CLEAN, "rouge_l": bad})  # type: ignore[dict-item]


def test_scores_must_be_a_mapping() -> None:
    with pytest.raises(BadInput, match="scores must map detector names to numbers, not be a list"):
        decide(FILE, [0.4])  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 0.0, np.float32(0), np.int64(0), Fraction(0)])
def test_any_real_number_will_do(number: float) -> None:
    assert decide(FILE, {"rouge_l": number}).flags == ("rouge_l",)


@given(st.dictionaries(st.sampled_from([*FILE.detectors, "other"]), st.none() | st.floats()))
def test_total_and_consistent(scores: dict[str, float | None]) -> None:
    decision = decide(FILE, scores)
    expected = sorted(
        name
        for name, rule in FILE.detectors.items()
        if rule.tier != "off"
        and (value := scores.get(name)) is not None
        and math.isfinite(value)
        and flags(value, rule.threshold, rule.flag_when)
    )
    assert list(decision.flags) == expected
    known = any(math.isfinite(score) for name, score in scores.items() if score is not None and name in RULES)
    assert decision.unscored == (not known)
    assert decision.verdict == ["ACCEPT" if known else "REVIEW", "REVIEW", "REJECT"][min(len(expected), 2)]
    assert sorted(decision.scored + decision.missing) == ["entropy_z", "grounding", "rouge_l"]


def test_load(tmp_path: object) -> None:
    path = f"{tmp_path}/thresholds.json"
    write(FILE, path)
    assert decide(load(path), CLEAN) == decide(FILE, CLEAN)
    with pytest.raises(BadThresholds, match="no such file"):
        load(f"{tmp_path}/other.json")

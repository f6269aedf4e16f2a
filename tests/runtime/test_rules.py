"""Ensembles in production: the same as the statistics' rules, and what `decide` makes of them."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.orientation import SLACK, reaches
from calibrate.runtime import decide, probability, rules
from calibrate.stats.ensembles import combine
from calibrate.stats.ensembles import rules as ensemble
from calibrate.stats.ensembles.combine import KINDS, Recipe
from calibrate.types import FlagWhen
from tests.stats.ensembles.ensembling import NAMES, material
from tests.thresholds import make, make_vectors
from tests.thresholds.make import MAP, entry, release
from tests.thresholds.make_vectors import MEMBERS, PAIR, A, B

WAYS: dict[str, FlagWhen] = {"a": "above", "b": "below", "c": "above"}
near = st.floats(-110, 110) | st.sampled_from([0.0, 1.0, math.inf, -math.inf])


def through_json(rule: ensemble.Rule) -> Any:
    return json.loads(json.dumps(ensemble.to_json(rule)))


@settings(max_examples=100)
@given(make.rules(WAYS), st.dictionaries(st.sampled_from(sorted(WAYS)), near))
def test_one_trace_scores_as_in_the_statistics(rule: ensemble.Rule, scores: dict[str, float]) -> None:
    (expected,) = rule.score(scores) if scores else rule.score({"a": np.nan})
    assert rules.score(through_json(rule), scores) == pytest.approx(expected, rel=1e-12, abs=SLACK / 2)


@pytest.mark.parametrize("kind", [*KINDS, "fixed"])
def test_a_fitted_rule_flags_the_same_traffic_at_a_cut_that_is_one_of_its_scores(kind: Any) -> None:
    found = material(seed=5, n=150, missing=0.2, traffic=800)
    own = dict.fromkeys(NAMES, 0.5) if kind == "fixed" else {}
    rule = combine.build_rule(Recipe("k_of_n" if own else kind, expensive="b", thresholds=own), found)
    document, scores = through_json(rule), rule.score(found.traffic)
    cut = float(np.sort(scores)[-80])
    flagged = []
    for row in range(800):
        one = {name: float(v[row]) for name, v in found.traffic.items() if not np.isnan(v[row])}
        flagged.append(reaches(rules.score(document, one), cut))
    assert flagged == (scores >= cut).tolist()


def test_far_beyond_a_floats_range_there_is_an_answer() -> None:
    one = {"flag_when": "above", "centre": -1e308, "spread": 1e-300, "slope": 0.0, "missing": 0.0}
    rule = {"form": "logistic", "intercept": 0.0, "inputs": {"a": one}}
    assert math.isnan(rules.score(rule, {"a": 1e308}))
    file = release(PAIR, ensembles={"g": make_vectors.ensemble(rule, "a", signal=0.1)})
    assert decide(file, {"a": 1e308, "b": 1}).flags == ()
    for x in (1e308, -1e308):
        steep = {**rule, "inputs": {"a": {**one, "slope": 1.0}}, "intercept": x}
        assert 0 <= rules.score(steep, {"a": 0.0}) <= 1


def test_reasons_name_the_ensemble_its_score_and_its_cut() -> None:
    vote = {"form": "vote", "k": 1, "standings": {"a": A, "b": B}}
    file = release(
        {**MEMBERS, "a": entry(1, "above")}, ensembles={"g": make_vectors.ensemble(vote, "a b", page=0.9, signal=0.75)}
    )
    decision = decide(file, {"a": 2, "b": 0.25})
    assert decision.reasons == ("a 2 ≥ 1", "g 0.9 ≥ 0.9")
    assert (decision.flags, decision.tier, decision.verdict) == (("a", "g"), "page", "REJECT")
    assert [rule.detector for rule in file.rules] == ["a", "b"]  # c is off, and no member
    assert decide(file, {}).reasons == ("nothing was scored: a, b gave no number",)


@given(st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats()))
def test_total_over_whatever_is_missing(scores: dict[str, float | None]) -> None:
    several = {**make_vectors.votes(), **make_vectors.scores()}
    for file, *_ in several.values():
        decision = decide(file, scores)
        assert set(decision.flags) <= {*file.detectors, *file.ensembles}
        assert (decision.tier == "off") == (decision.flags == ())


def test_a_probability_where_there_is_a_map() -> None:
    file = release({"d": entry(probability_map=MAP), "e": entry()})
    assert probability(file, "d", 0.6) == pytest.approx(1 / (1 + math.e))
    assert probability(file, "d", -1e300) == 1.0
    assert probability(file, "d", math.nan) is probability(file, "d", -math.inf) is None
    assert probability(file, "d", math.nan) is probability(file, "e", 0.6) is probability(file, "no", 1) is None
    with pytest.raises(BadInput, match="the score of d is a text"):
        probability(file, "d", "0.6")  # type: ignore[arg-type]

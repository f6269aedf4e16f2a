"""The detector `learned`: the head's arithmetic, its flat form, and what it says where it cannot score."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from calibrate import registry
from calibrate.detectors.learned import Learned
from calibrate.detectors.shared.sentence_values import STATISTICS, sentence_statistics
from calibrate.types import Evidence, HeadBase, HeadFeature, LearnedHead, Score
from calibrate.workspace import Workspace, using
from tests.detectors.examples import BATTERIES, WARRANTY, trace

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TEXTS = WARRANTY, BATTERIES
ANSWER = "The warranty lasts 24 months from delivery. Theft is covered for five years."


def base(name: str, seed: int, *, missing: float = 0.0) -> HeadBase:
    made, rng = registry.make(name), np.random.default_rng(seed)
    features = tuple(
        HeadFeature(which, float(rng.normal()), float(rng.uniform(0.1, 2)), float(rng.normal()))
        for which in sorted(STATISTICS)
    )
    params = json.dumps(registry.config_of(made), sort_keys=True)
    return HeadBase(name, made.version, params, made.revision(), missing, features)


HEAD = LearnedHead(
    (base("citation_validity", 1, missing=0.7), base("token_overlap", 2)), -0.4, 120, 30, "sha256:0", NOW
)


def score(head: LearnedHead | None, *answers: str) -> list[Score]:
    with using(Workspace(head=head)):
        return list(Learned().score([trace(answer, *TEXTS, id=answer[:5] or "e") for answer in answers]))


def added(head: LearnedHead, name: str, answer: str) -> float:
    """What a base adds to the log odds, with numpy."""
    made, (of,) = registry.make(name), [each for each in head.bases if each.name == name]
    (found,) = made.score([trace(answer, *TEXTS)])
    values = [piece.value for piece in found.evidence if piece.value is not None and piece.start is not None]
    worst = np.sort(values or [found.value])
    worst = worst[::-1] if made.flag_when == "above" else worst
    beyond = worst >= made.usual_threshold if made.flag_when == "above" else worst <= made.usual_threshold
    each = {"answer": found.value, "worst": worst[0], "worst_two": worst[:2].mean(), "mean": worst.mean()}
    each["share"] = beyond.mean()
    return sum((each[f.statistic] - f.mean) / f.scale * f.coefficient for f in of.features)


def test_the_value_is_the_logistic_of_what_the_bases_find() -> None:
    cited = f"{ANSWER[:-1]} [3]."
    (got,) = score(HEAD, cited)
    odds = HEAD.intercept + added(HEAD, "citation_validity", cited) + added(HEAD, "token_overlap", cited)
    assert got.value == pytest.approx(1 / (1 + math.exp(-odds)), rel=1e-12)
    assert got.evidence[0].text.startswith(("Citation validity adds ", "Token overlap adds "))


def test_a_base_without_a_score_counts_as_its_mean_with_a_weight_of_its_own() -> None:
    (got,) = score(HEAD, ANSWER)  # cites nothing
    odds = HEAD.intercept + 0.7 + added(HEAD, "token_overlap", ANSWER)
    assert got.value == pytest.approx(1 / (1 + math.exp(-odds)), rel=1e-12)
    assert any("no score" in piece.text for piece in got.evidence)


def test_without_any_base_it_abstains_and_without_a_head_it_says_how_to_get_one() -> None:
    cites_only = replace(HEAD, bases=HEAD.bases[:1])
    (got,) = score(cites_only, ANSWER)
    assert (got.value, got.status) == (None, "abstained")
    assert "none of the detectors that its head reads has a score" in (got.reason or "")
    (without,) = score(None, ANSWER)
    assert without.status == "abstained"
    assert "learn --save" in (without.reason or "")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"version": "0"}, "of version 0; here it is"),
        ({"revision": "model-a"}, "of revision model-a; here it is (none)"),
        ({"name": "gone"}, "which cannot be made: no detector 'gone'"),
        ({"params": '{"no_such": 1}'}, "which cannot be made: token_overlap has no parameter 'no_such'"),
    ],
)
def test_a_base_that_is_another_one_now_makes_it_unavailable(changed: dict[str, str], says: str) -> None:
    head = replace(HEAD, bases=(HEAD.bases[0], replace(HEAD.bases[1], **changed)))
    with using(Workspace(head=head)):
        why = Learned().unavailable() or ""
    assert says in why
    assert "learn again" in why
    assert [each.reason for each in score(head, ANSWER)] == [why]


def test_the_flat_form_keeps_every_digit_and_the_digest() -> None:
    again = LearnedHead.from_json(json.loads(json.dumps(HEAD.to_json())))
    assert again == HEAD
    assert again.digest == HEAD.digest
    later = replace(HEAD, fitted_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert later.digest == HEAD.digest
    assert replace(HEAD, intercept=-0.4000001).digest != HEAD.digest


@pytest.mark.parametrize("lost", ["intercept", "n", "token_overlap/worst/mean", "token_overlap/version"])
def test_an_incomplete_head_is_none(lost: str) -> None:
    assert LearnedHead.from_json({name: value for name, value in HEAD.to_json().items() if name != lost}) is None


def test_sentences_are_read_from_the_suspicious_side() -> None:
    pieces = tuple(Evidence("", value, at, at + 1) for at, value in enumerate((0.9, 0.1, 0.4)))
    loose = (*pieces, Evidence("a remark"), Evidence("of no place", 0.0))
    found = Score("t", 0.5, evidence=loose)
    assert sentence_statistics(found, flag_when="below", usual=0.4) == pytest.approx((0.5, 0.1, 0.25, 1.4 / 3, 2 / 3))
    assert sentence_statistics(found, flag_when="above", usual=0.9) == pytest.approx((0.5, 0.9, 0.65, 1.4 / 3, 1 / 3))
    assert sentence_statistics(Score("t", 0.5), flag_when="below", usual=0.4) == (0.5, 0.5, 0.5, 0.5, 0.0)
    assert sentence_statistics(Score("t", None, "why", "abstained"), flag_when="below", usual=0.4) is None

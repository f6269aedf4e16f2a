"""Log-probabilities of a verdict, and lists."""

from __future__ import annotations

import math
from typing import Any

import pytest

from calibrate import registry
from calibrate.backends import files
from calibrate.detectors.shared.replies import Unparsed, items, odds
from calibrate.types import Token


def token(text: str, **top: float) -> Token:
    """A token with the probabilities (not logs) of the alternatives; spellings are given with _ for a blank."""
    pairs = tuple((word.replace("_", " "), math.log(p)) for word, p in top.items())
    return Token(text, dict(pairs).get(text, -0.1), pairs)


def test_p_no_sums_the_spellings() -> None:
    tokens = [token(" No", _No=0.4, NO=0.1, no=0.1, _YES=0.15, Yes=0.05, Maybe=0.1), token(".", **{".": 1.0})]
    found = odds(tokens, " No.", 1)
    assert found is not None
    assert found.no == pytest.approx(0.6 / 0.8)  # by hand
    assert found.mass == pytest.approx(0.8)


def test_p_no_looks_at_the_token_of_the_word() -> None:
    tokens = [token("**", **{"**": 0.9, "NO": 0.1}), token("YES", YES=0.9, NO=0.1), token("**", **{"**": 1.0})]
    found = odds(tokens, "**YES**", 2)
    assert found is not None
    assert found.no == pytest.approx(0.1)
    thought = [token("<think>x</think>\n", a=1.0), *tokens]
    assert odds(thought, "**YES**", 2) == found


def test_a_blank_that_was_stripped_from_the_text_does_not_shift_the_tokens() -> None:
    tokens = [token("\n", **{"\n": 1.0}), token(" NO", _NO=0.7, _YES=0.3)]
    assert odds(tokens, "NO", 0) == odds(tokens, "\n NO", 2)


def test_words_that_only_begin_like_one_do_not_count() -> None:
    found = odds([token("NO", NO=0.5, YES=0.25, NOT=0.1, NONE=0.1, N=0.05)], "NO", 0)
    assert found is not None
    assert found.no == pytest.approx(2 / 3)


def test_a_word_that_the_vocabulary_splits_counts_by_its_first_piece() -> None:
    """As SmolLM2 does: "Y", "ES" but "NO". Without the piece P(NO) would be near 1 for an answer that is YES."""
    pieces = {"Y": 0.80, "NO": 0.10, "No": 0.03, "Yes": 0.02, "N": 0.01, "S": 0.004}
    found = odds([token("Y", **pieces), token("ES", ES=1.0)], "YES", 0)
    assert found is not None
    assert found.no == pytest.approx(0.13 / 0.95)  # "N" is no NO: that is a token of its own here
    assert odds([token("NO", **pieces)], "NO", 0) == found
    both = odds([token("N", N=0.9, Y=0.1), token("O", O=1.0)], "NO", 0)
    assert both is not None
    assert both.no == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (None, "NO"),
        ([], "NO"),
        ([Token("NO", -0.1)], "NO"),  # no alternatives: the rest may be anything
        ([token("other", other=1.0)], "NO"),
        ([Token("NO", 3.2, (("NO", 3.2), ("YES", 1.0)))], "NO"),  # logits
        ([Token("NO", math.nan, (("NO", math.nan),))], "NO"),
        ([Token("NO", -math.inf, (("YES", -math.inf),))], "NO"),
    ],
)
def test_without_usable_log_probabilities_there_are_no_odds(tokens: list[Token] | None, text: str) -> None:
    assert odds(tokens, text, 0) is None


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        (
            "Sure, here are:\n1. A b.\n2) C d.\n- E f.\n* G h.\n• I j.\nLet me know!",
            ["A b.", "C d.", "E f.", "G h.", "I j."],
        ),
        ("(1) A\n(2) B", ["A", "B"]),
        ("1. It weighs 1.5 kg\n2. In 2024. it rained", ["It weighs 1.5 kg", "In 2024. it rained"]),
        ("- one\n  and more of it\n- two", ["one and more of it", "two"]),
        ("- A\n- a\n- B", ["A", "B"]),
        ("**Claims**\n- **A** holds", ["**A** holds"]),
        ("1、保修期为两年。\n2、电池除外。", ["保修期为两年。", "电池除外。"]),
        ("١. الضمان لمدة سنتين", ["الضمان لمدة سنتين"]),
        ("- A\n\nNone of this was checked.", ["A"]),
        ("NONE", []),
        ("None.", []),
        ("- NONE", []),
    ],
)
def test_lists(reply: str, claims: list[str]) -> None:
    assert items(reply) == claims


@pytest.mark.parametrize(
    "reply", ["", "Sure, here are the claims:", "There is nothing to list.", "**A** holds", "1.5 kg", "2024. A"]
)
def test_what_is_no_list(reply: str) -> None:
    with pytest.raises(Unparsed, match="no list"):
        items(reply)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("judge_score", {"aggregate": "max"}),
        ("judge_verdict", {}),
        ("judge_yes_no", {"logprobs": 10}),
        ("selfcheck_judge", {"aggregate": "max"}),
    ],
)
def test_what_scores_are_kept_under(name: str, own: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters that judges share are written once; their names are part of every score's key."""
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", "http://localhost:9/v1")
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "m")
    judge = registry.make(name)
    assert registry.config_of(judge) == {"variant": "default", "model": "", "longest": 400_000, **own}
    assert judge.revision() == f"m@03334085f4b1+prompt-{files.version(f'prompts/{name}.txt')}"

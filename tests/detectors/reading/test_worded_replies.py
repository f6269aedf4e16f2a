"""Ratings and words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.detectors.shared.replies import Unparsed, first_word, rating


@pytest.mark.parametrize(
    ("reply", "value"),
    [("0.9", 0.9), (" 1 ", 1), ("0", 0), (".5", 0.5), ("**0.25**", 0.25), ("Score: 0.9", 0.9), ("score = 1.0.", 1),
     ('{"score": 0.9, "reason": "r"}', 0.9), ('{"score": 1}', 1), ('Here: {"score": 0, "reason": "not 0.9"}', 0)],
)  # fmt: skip
def test_ratings(reply: str, value: float) -> None:
    assert rating(reply).value == value


@pytest.mark.parametrize(
    "reply",
    ["I would not give 0.9", "On a scale from 0 to 1: 0.9", "0.9 out of 1", "0.9 or 0.1", "9/10", "90%", "8", "1.01",
     "-0.1", "0,9", "nan", "inf", "1e-1", "", "none", "٠٫٩", '{"score": 8}', '{"score": -0.1}', '{"score": "0.9"}',
     '{"score": true}', '{"score": null}', '{"reason": "0.9"}', '{"Score": 0.9}', '{"score": [0.9]}'],
)  # fmt: skip
def test_what_is_no_rating(reply: str) -> None:
    with pytest.raises(Unparsed):
        rating(reply)


@settings(max_examples=200)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_rating_is_the_number_or_nothing(value: float) -> None:
    reply = json.dumps({"score": value, "reason": ""})
    if 0 <= value <= 1:
        assert rating(reply).value == value
    else:
        with pytest.raises(Unparsed):
            rating(reply)


@pytest.mark.parametrize(
    ("reply", "word", "rest"),
    [("YES", "yes", ""), (" no", "no", ""), ("**YES**", "yes", ""), ("**NO**, it is not.", "no", "it is not."),
     ("No. The context says 12.", "no", "The context says 12."), ("NO The text says 12.", "no", "The text says 12."),
     ("Answer: NO", "no", ""), ("**Answer:** yes", "yes", ""), ('"Yes"', "yes", ""), ("# NO\nBecause", "no", "Because"),
     ("Yes - it does", "yes", "it does"), ("YES, no doubt", "yes", "no doubt"), ("N/A", "n/a", ""), ("n/a.", "n/a", ""),
     ("No\nnot at all", "no", "not at all"), ("NO — 保修期不同", "no", "保修期不同")],
)  # fmt: skip
def test_first_words(reply: str, word: str, rest: str) -> None:
    found = first_word(reply)
    assert (found.word, found.rest) == (word, rest)
    assert reply[found.start : found.start + len(word)].lower() == word


@pytest.mark.parametrize(
    "reply",
    ["", "Not sure", "NONE", "NOT supported", "None of it", "No idea", "No one knows", "NO ANSWER", "No-one", "Nope",
     "yesterday",
     "YES or NO", "YES/NO", "YES|NO", "**YES** or **NO**?", "YES, NO", "I think NO", "The answer is NO.", "N", "Y",
     "VERDICT: NO", "{NO}", "1", "Nein", "否", "no_context", "yes'm", "NO/A"],
)  # fmt: skip
def test_what_is_no_word(reply: str) -> None:
    with pytest.raises(Unparsed):
        first_word(reply)


def test_a_word_that_was_cut_off_is_none() -> None:
    assert first_word("NO, it", cut=True).word == "no"
    with pytest.raises(Unparsed, match="cut off"):
        first_word("NO", cut=True)  # of NOT, perhaps

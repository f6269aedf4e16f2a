"""Replies in JSON."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.detectors.shared.replies import Unparsed, first_word, items, only_object, rating
from tests.detectors.reading.prompting import anything

GOOD = {"score": 0.5, "reason": "a } brace { in a string"}
TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"\n {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"Sure, here it is:\n{TEXT}\nLet me know!",
        f"**{TEXT}**",
        f"理由：{TEXT}。",
    ],
)
def test_one_object_is_found(reply: str) -> None:
    found = only_object(reply)
    assert found.value == GOOD
    assert found.text == TEXT


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ("VERDICT: CLEAN", "no JSON object"),
        (f"{TEXT}\n{TEXT}", "more than one"),
        (f"First {TEXT}, or rather {{}}", "more than one"),
        (f"{TEXT} }}", "more than one"),
        (f"[{TEXT}]", "array"),
        (f"[{TEXT}, {TEXT}]", "array"),
        (TEXT[:-1], "unfinished"),
        ('{"items": [{"score": 0.9}, {"sc', "unfinished"),  # what is complete inside is not taken for the whole
        ('Use {"score": <number>}: {"score": 1}', "malformed"),
        ("{'score': 1}", "malformed"),
        ('{"score": 0, "score": 1}', "twice"),
        ('{"score": NaN}', "NaN"),
        ('{"score": -Infinity}', "Infinity"),
        ('{"a":' * 100_000, "characters"),
        ('{"a":' * 30_000, "malformed"),
        ('{"a": ' + "9" * 10_000 + "}", "malformed"),
    ],
)
def test_anything_else_is_unparsed(reply: str, why: str) -> None:
    with pytest.raises(Unparsed, match=why):
        only_object(reply)


objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), st.lists, max_leaves=4),
    max_size=4,
)


@settings(max_examples=200)
@given(value=objects, before=st.text(max_size=20), after=st.text(max_size=20))
def test_an_object_in_prose_is_found_or_refused_but_never_another(
    value: dict[str, Any], before: str, after: str
) -> None:
    reply = f"{before}{json.dumps(value)}{after}"
    if "{" in before or set("{}") & set(after) or before.rstrip().endswith("["):
        with pytest.raises(Unparsed):
            only_object(reply)
    else:
        assert only_object(reply).value == value


@settings(max_examples=300)
@given(text=anything)
def test_arbitrary_text_raises_nothing_but_unparsed(text: str) -> None:
    for read in (only_object, rating, first_word, items):
        with contextlib.suppress(Unparsed):
            read(text)  # type: ignore[operator]

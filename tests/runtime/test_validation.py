"""What a program hands over is looked at before anything is made of it."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest

from calibrate.errors import BadInput
from calibrate.runtime.validation import Kind, check_number, find_fault
from calibrate.types import Source, Token, Trace

GOOD = Trace("t", "a", question="q", context="c", sources=(Source("1", "s"),), tokens=(Token("a", -0.1),))


@pytest.mark.parametrize(
    "changes",
    [{}, {"sources": [Source("1", "s")]}, {"sources": None}, {"question": None, "context": None, "tokens": None},
     {"alternatives": ["b"]}, {"answer": ""}, {"id": 5}],
)  # fmt: skip
def test_what_detectors_can_read_has_no_fault(changes: dict[str, Any]) -> None:
    assert find_fault(dataclasses.replace(GOOD, **changes)) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answer": None}, "answer is None; give a text"),
        ({"answer": b"x"}, "answer is a bytes; give a text"),
        ({"question": ["q"]}, "question is a list; give a text"),
        ({"context": 5}, "context is an int; give a text"),
        ({"sources": "abc"}, "sources is a text; give a list of Source objects"),
        ({"sources": {"1": "abc"}}, "sources is a dict; give a list of Source objects"),
        ({"sources": [Source("1", "s"), "abc"]}, "sources holds a text; give a list of Source objects"),
        ({"sources": [None]}, "sources holds None; give a list of Source objects"),
        ({"sources": [Source("1", None)]}, "the text of a source is None; give a text"),  # type: ignore[arg-type]
        ({"tokens": ["a"]}, "tokens holds a text; give a list of Token objects"),
        ({"alternatives": "abc"}, "alternatives is a text; give a list of texts"),
        ({"alternatives": None}, "alternatives is None; give a list of texts"),
        ({"attributes": None}, "attributes is None; give a dict"),
    ],
)
def test_a_fault_names_the_field(changes: dict[str, Any], said: str) -> None:
    assert find_fault(dataclasses.replace(GOOD, **changes)) == said


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("count", [1, 10**9], [0, -1, 1.0, 2.5, "1", None, True]),
        ("share", [1, 0.5, Fraction(1, 3), 1e-9], [0, 1.01, float("nan"), "x", True, 1j]),
        ("wait", [0, 0.5, 3600], [-1, float("inf"), float("nan"), "5", [5]]),
        ("pause", [1e-3, 3600], [0, -1, float("inf"), 1e300, "5", None]),
    ],
)
def test_numbers(kind: Kind, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        check_number("a_setting", value, kind)
    for value in bad:
        with pytest.raises(BadInput, match=r"^a_setting cannot be .*; it is a "):
            check_number("a_setting", value, kind)

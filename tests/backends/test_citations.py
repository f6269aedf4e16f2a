"""Which brackets cite, what they cite, and which sentence they belong to."""

from __future__ import annotations

import pytest

from calibrate.backends.text.citations import attribute_citations, citations, without_marks


@pytest.mark.parametrize(
    ("text", "known", "numbers"),
    [
        ("So it is [1].", (), [("1",)]),
        ("So it is[1].", (), [("1",)]),
        ("So it is [1, 2] [3;4].", (), [("1", "2"), ("3", "4")]),
        ("So it is [1-3] [4–5].", (), [("1", "2", "3"), ("4", "5")]),
        ("So it is [1][2].", (), [("1",), ("2",)]),
        ("So it is 【1】 and 【4:0†source】 and ［１］.", (), [("1",), ("4",), ("1",)]),
        ("So it is [^2] [Source 3] [01] [١].", (), [("2",), ("3",), ("1",), ("1",)]),
        ("So it is [1](https://example.com/a).", (), [("1",)]),
        ("So it is [0].", (), [("0",)]),
        ("In 2020[1], vitamin C[2] and COVID19[3].", ("1", "2", "3"), [("1",), ("2",), ("3",)]),
        ("So it is [1-1000000000] and [1000000000].", (), [("1", "1000000000"), ("1000000000",)]),
        ("See [doc-7].", ("doc-7",), [("doc-7",)]),
        ("See [doc-7].", (), []),
        ("In [2024] and [2019-2021].", (), []),
        ("In [2024].", ("2024",), [("2024",)]),
        ("Read arr[0], my_list[2], x[1], f(x)[0], a = [1, 2].", ("1", "2"), []),
        ("Read `a [1]` and\n```\nb [2]\n```\nnow [3].", (), [("3",)]),
        ("Between [0, 1] lies ![1](http://x/y.png) and [x] and [ ].", (), []),
        ("It is so (1).", (), []),
        ("So [1].\n[1]: https://example.com", (), [("1",)]),
        ("So [1].\n\nReferences:\n[1] A. Author, A Book\n[2] Another", (), [("1",)]),
        ("[" * 1000 + "1" + "]" * 1000, (), [("1",)]),
    ],
)
def test_marks(text: str, known: tuple[str, ...], numbers: list[tuple[str, ...]]) -> None:
    found = citations(text, sources=known)
    assert [one.numbers for one in found] == numbers
    assert all(text[one.start] in "[【［" and text[one.end - 1] in "]】］" for one in found)


def test_parentheses_only_when_asked() -> None:
    assert [one.numbers for one in citations("It is so (1).", parentheses=True)] == [("1",)]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("A. [1] B. [2]", [("1",), ("2",)]),
        ("One is so. [1] Two is so. [2]", [("1",), ("2",)]),
        ("[1] One is so. [2] Two is so.", [("1",), ("2",)]),
        ("One is so. Two is so [1][2].", [(), ("1", "2")]),
        ("Dr. Who is so [1]. Two", [("1",), ()]),
        ("One is so.\n[1]\nTwo is so. [2]", [("1",), ("2",)]),
        ("- One\n- Two [2]", [(), ("2",)]),
        ("一是。[1]二是。[2]", [("1",), ("2",)]),
    ],
)
def test_attribution(text: str, cited: list[tuple[str, ...]]) -> None:
    assert [sentence.numbers for sentence in attribute_citations(text)] == cited


def test_claims_have_no_marks() -> None:
    text = "It is big [1], and old [2]. [3]"
    assert [without_marks(text, sentence) for sentence in attribute_citations(text)] == ["It is big, and old."]

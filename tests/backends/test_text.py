"""Sentences, words, windows: tricky cases, exact offsets, and texts meant to be slow."""

from __future__ import annotations

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.backends.memo import Memo
from calibrate.backends.text import segments as text_module
from calibrate.backends.text.lexical import blank_marks, stem
from calibrate.backends.text.segments import sentences, windows, words
from calibrate.backends.text.wordlists import STOP_WORDS, stop_words

CASES: dict[str, list[str]] = {
    "titles": ["Dr. Smith met Mr. Jones at 5 p.m. on Jan. 5.", "He left."],
    "latin": ["Was it e.g. a bribe?", '"No!" he said.'],
    "initialisms": ["The U.S. Senate met; i.e. it voted.", "J. K. Rowling wrote it... then stopped."],
    "company": ["Apple Inc. sold it for $3.50.", "See Fig. 2 and No. 5."],
    "place": ["It was in Washington, D.C.", "The next day he went."],
    "numbers": ["Costs rose 3.5% in 2020.", "The 2021 cost fell."],
    "web": ["Visit www.example.com or use Node.js.", "Then e-mail a.b@c.org."],
    "quotes": ["He said “stop.”", "Then he (finally) left!"],
    "trailing citation": ["One is true. [1]", "Two is false [2].", "Three.[3][4]", "Four"],
    "et al": ["Smith et al. [3] show this.", "It holds."],
    "single letters": ["A. [1]", "B. [2]"],
    "glued": ["Read more.", "Great you are all set."],
    "lower case": ["it works.", "then it fails.", "ok"],
    "chinese": ["这是第一句。", "这是第二句！", "「真的吗？」", "他问。[1]"],
    "arabic": ["هل هذا صحيح؟", "نعم هذا صحيح."],
    "hindi": ["यह पहला वाक्य है।", "यह दूसरा है।"],
    "german": ["Das kostet z.B. ca. 5 Euro.", "Es gilt usw. auch hier."],
}
BLOCKS: dict[str, tuple[str, list[str]]] = {
    "list": ("- one [1]\n\n# Head\n1. First. More.\n2) Last", ["one [1]", "Head", "First.", "More.", "Last"]),
    "wrapped": ("A long line that somebody wrapped at eighty columns for the United\nStates in 1999. Next.",
                ["A long line that somebody wrapped at eighty columns for the United\nStates in 1999.", "Next."]),
    "leading style": ("[1] First claim. [2] Second claim.", ["[1] First claim.", "[2] Second claim."]),
    "mark on its own line": ("A claim.\n[1]", ["A claim.\n[1]"]),
    "rules and blanks": ("One\n---\n\n\n***\nTwo", ["One", "Two"]),
    "nothing": (" \n\x00 😀 … !", []),
}  # fmt: skip


@pytest.mark.parametrize("expected", CASES.values(), ids=CASES)
def test_sentences(expected: list[str]) -> None:
    text = " ".join(expected) if expected[0] != "Read more." else "".join(expected)
    assert [text[part.start : part.end] for part in sentences(text)] == expected


@pytest.mark.parametrize(("text", "expected"), BLOCKS.values(), ids=BLOCKS)
def test_blocks(text: str, expected: list[str]) -> None:
    assert [text[part.start : part.end] for part in sentences(text)] == expected


def test_no_worse_than_pysbd_on_the_same_cases() -> None:
    """pysbd splits before [1], takes "et al." for an end and knows one language at a time. It is also seven times
    slower on a paragraph, and on a long line its time grows with the square of the length."""
    pysbd = pytest.importorskip("pysbd")
    segmenter = pysbd.Segmenter(language="en", clean=False)
    ours = theirs = 0
    for name, expected in CASES.items():
        text = " ".join(expected)
        ours += [text[a:b] for a, b in sentences(text)] == expected or name == "glued"
        theirs += [one.strip() for one in segmenter.segment(text)] == expected
    assert ours == len(CASES)
    assert theirs < ours


@given(st.text(alphabet=st.sampled_from(list("aB .!?\n[1]2,-。؟।é\"')(*>#字\u0301\ud800")), max_size=80))
@settings(max_examples=300)
def test_offsets_are_in_order_and_lose_no_word(text: str) -> None:
    parts = sentences(text)
    assert all(a.end <= b.start for a, b in pairwise(parts))
    assert all(text[part.start : part.end].strip() == text[part.start : part.end] for part in parts)
    inside = "".join(text[part.start : part.end] for part in parts)
    for letter in "aBé字":
        assert inside.count(letter) == text.count(letter)
    found = words(text)
    for token, start, end in zip(found.tokens, found.starts, found.ends, strict=True):
        assert token[0] == unicodedata.normalize("NFKC", text[start:end]).casefold()[0]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("3-5 days, 35", ["3", "5", "days", "35"]),
        ("1,000 or 1000 or 1.5 or 2,5", ["1000", "or", "1000", "or", "1.5", "or", "2,5"]),
        ("Don’t touch Bieber's long-acting 4IR", ["don't", "touch", "bieber", "long", "acting", "4ir"]),
        ("中文 テスト", ["中", "文", "テ", "ス", "ト"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("STRASSE straße ﬁne", ["strasse", "strasse", "fine"]),
        ("😀 … !", []),
    ],
)
def test_words(text: str, tokens: list[str]) -> None:
    assert list(words(text).tokens) == tokens


@given(
    st.text(
        alphabet=st.sampled_from(list("aBsı .,\n12'’-é²½ſİßŉ“\x01\x1c\x85\xa0‐•")) | st.characters(max_codepoint=0x24F),
        max_size=60,
    )
)
@settings(max_examples=500)
def test_words_of_latin_texts_are_those_of_every_script(text: str) -> None:
    """Latin texts go through patterns of their own; the pattern for every script is the definition."""
    defined = list(text_module._WORD.finditer(text))
    found = words(text)
    assert list(found.tokens) == [text_module._normalize(one.group()) for one in defined]
    assert list(zip(found.starts, found.ends, strict=True)) == [one.span() for one in defined]


@given(
    st.lists(
        st.sampled_from(
            ["Dr.", "It's", "1,000.5", "1.5mg", "a'b1", "don’t", "end.", "end.Next", "é!", "[1]", "\n", "- ", "字。"]
        ),
        max_size=12,
    )
)
@settings(max_examples=300)
def test_places_are_the_words_between(pieces: list[str]) -> None:
    text = " ".join(pieces)
    found, parts = words(text), sentences(text)
    assert [found.tokens[at.start : at.stop] for at in found.places(parts)] == [found.between(*part) for part in parts]


def test_words_between() -> None:
    text = "One two. Three four."
    assert [words(text).between(*part) for part in sentences(text)] == [("one", "two"), ("three", "four")]


def test_windows_overlap_and_cover() -> None:
    text = "One is. Two is. Three is."
    assert [text[a:b] for a, b in windows(text, sentences_per_window=2)] == ["One is. Two is.", "Two is. Three is."]
    assert [text[a:b] for a, b in windows(text, sentences_per_window=9)] == [text]
    assert windows("", sentences_per_window=2) == ()


def test_stems() -> None:
    assert [stem(word) for word in ("tablets", "studies", "walked", "is", "bus")] == [
        "tablet",
        "study",
        "walk",
        "is",
        "bus",
    ]


def test_stop_words_are_those_of_the_texts_language() -> None:
    assert {"the", "of"} <= stop_words(words("The end of the story is that it was over.").tokens)
    assert {"der", "und"} <= stop_words(words("Der Anfang und das Ende der Geschichte sind nicht bekannt.").tokens)
    assert stop_words(words("保修期为二十四个月").tokens) == frozenset()
    assert all(len(held) > 40 for held in STOP_WORDS.values())


@given(st.lists(st.sampled_from(sorted(set().union(*STOP_WORDS.values()))), max_size=30))
def test_stop_words_by_their_definition(tokens: list[str]) -> None:
    """English, unless another language's list has over a quarter more of the words."""
    counts = {name: sum(token in held for token in tokens) for name, held in STOP_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    expected = "en" if counts["en"] * 1.25 >= counts[best] else best
    assert stop_words(tuple(tokens)) == (STOP_WORDS[expected] if counts[best] else frozenset())


def test_masked_keeps_offsets() -> None:
    from calibrate.backends.text.citations import citations

    text = "A [1] b [2, 3]."
    assert blank_marks(text, citations(text)) == "A     b       ."


def test_memo_is_bounded() -> None:
    asked: list[str] = []
    memo = Memo(lambda text: asked.append(text) or len(text), characters=20)  # type: ignore[func-returns-value]
    assert [memo(text) for text in ("a" * 9, "a" * 9, "b" * 9, "c" * 9, "a" * 9)] == [9] * 5
    assert len(asked) == 4


def test_memo_of_several_texts() -> None:
    asked: list[tuple[str, ...]] = []
    memo = Memo(lambda *texts: asked.append(texts) or len(texts), characters=12)  # type: ignore[func-returns-value]
    assert [memo("a", "b"), memo("ab"), memo("a", "b"), memo("a", "b" * 9), memo("a", "b")] == [2, 1, 2, 2, 2]
    assert len(asked) == 4


# A quarter of a megabyte each: quadratic time would show as minutes.
SLOW = {
    "one word": "a" * 250_000,
    "full stops": ". " * 125_000,
    "brackets": "[" * 250_000,
    "half marks": ".[1" * 80_000,
    "quotes": "> " * 125_000,
    "lines": "x\n" * 125_000,
    "ordinary": "This is a sentence [1]. " * 10_000,
    "marks": "[1]" * 80_000,
    "characters": "字" * 250_000,
    "accents": "e\u0301" * 125_000,
    "blank lines": (" " * 50 + "\n") * 5_000,
    "surrogates": "\ud800" * 250_000,
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_long_texts_take_seconds(text: str) -> None:
    from calibrate.backends.text.citations import attribute_citations

    began = time.perf_counter()
    attribute_citations(text)
    words(text)
    assert time.perf_counter() - began < 10  # under 1 s on an idle machine

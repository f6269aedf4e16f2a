"""Traces for the detector tests: one that every detector can score, and the awkward ones."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from calibrate.types import Source, Token, Trace

WARRANTY = "The warranty of the X200 lasts 24 months from delivery. Keep the invoice as proof of purchase."
BATTERIES = "Batteries are covered for twelve months. Damage by water is excluded."
OBJECT_SCHEMA: dict[str, Any] = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}


def trace(answer: str, *texts: str, id: str = "t", schema: Any = None, context: str | None = None) -> Trace:
    """A trace whose sources are numbered from 1."""
    sources = tuple(Source(str(number), text) for number, text in enumerate(texts, 1))
    return Trace(id, answer, question="?", sources=sources, schema=schema, context=context)


def tokens(answer: str) -> tuple[Token, ...]:
    """The answer word by word, each all but sure."""
    words = re.findall(r"\s*\S+", answer)
    return tuple(Token(word, -0.2, ((word, -0.2), ("other", -1.9))) for word in words)


def complete(name: str, id: str = "full") -> Trace:
    """A trace with everything any detector may need; for `schema` the answer is JSON."""
    answer = (
        '{"ok": 1}' if name == "schema" else "The X200 is covered for 24 months [1]. Batteries for five years [2][7]."
    )
    full = trace(answer, WARRANTY, BATTERIES, id=id, schema=OBJECT_SCHEMA)
    alternatives = ("It is covered for two years.", "Coverage lasts 24 months.", "Five years.")
    sources = tuple(replace(source, retrieval_score=0.9 / number) for number, source in enumerate(full.sources, 1))
    return replace(full, sources=sources, tokens=tokens(answer), alternatives=alternatives, model="m", context=WARRANTY)


def variety(name: str) -> list[Trace]:
    """Two dozen different traces, most of which the detector can score."""
    full = complete(name)
    answers = (
        ['{"ok": true}', '{"ok": "x"}', '{"no": 1}']
        if name == "schema"
        else [
            "The warranty lasts 24 months from delivery [1].",
            "Water damage is covered too [2]. So is theft [1].",
            "The moon is made of cheese [1][2]. Keep the invoice [1].",
            "Uncited, and without any mark.",
        ]
    )
    made = [
        replace(full, id=f"{name}-{i}-{j}", answer=f"{one}{' ' * i}", tokens=tokens(one))
        for i in range(5)
        for j, one in enumerate(answers)
    ]
    return [*made, *(replace(one, id=f"a{i}") for i, one in enumerate(awkward()[:6]))]


def awkward() -> list[Trace]:
    """What production logs hold: none may raise, and none may score NaN."""
    nasty = [
        "",
        "   \n\t ",
        "😀🎉👍",
        "\x00\x00[1]\x00",
        "a \ud800 b [1]. \udfff",
        "[1000000000] [1-1000000000] [0].",
        "[1]",
        "。。。",
        "http://x.y/?a=[1]&b=[2]",
        "```\ncode [1]\n```",
        "9" * 5000,
        "[" * 2000,
        '{"a": NaN}',
        "null",
    ]
    sources = [(), ("",), ("   ",), ("\ud800",), ("😀",), (WARRANTY, BATTERIES)]
    made = [
        trace(answer, *texts, id=f"n{i}-{j}", schema=OBJECT_SCHEMA)
        for i, answer in enumerate(nasty)
        for j, texts in enumerate(sources)
    ]
    return [
        *made,
        trace("Only context here.", context="Only context here."),
        Trace("bare", "An answer and nothing else."),
    ]

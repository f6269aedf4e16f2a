"""What a token classifier reads before the answer: LettuceDetect's prompt around numbered passages, or bare texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["en", "de", "fr", "es", "it", "pl", "cn", "hu"]
Layout = Literal["lettucedetect", "pair"]

_FILE = Path(__file__).with_name("lettucedetect.toml")
_BLANK = re.compile(r"(\{question\}|\{count\}|\{context\})")


@cache
def _texts() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Prompt:
    """The layout of what stands before an answer: `line` numbers one passage, `text` puts passages and question
    together."""

    layout: Layout = "lettucedetect"
    language: Language = "en"

    def line(self, number: int, passage: str) -> str:
        """Write one passage with its number, counted from 1."""
        if self.layout == "pair":
            return passage
        return f"{_texts()[self.language]['passage']} {number}: {passage}"

    def text(self, passages: Sequence[str], question: str | None) -> str:
        """Write the whole prompt. Without a question it asks for a summary, as for the models' training data."""
        context = "\n".join(self.line(number, passage) for number, passage in enumerate(passages, 1))
        if self.layout == "pair":
            return f"{question}\n\n{context}" if question else context
        template = _texts()[self.language]["qa" if question is not None else "summary"]
        filled = {"{question}": question or "", "{count}": str(len(passages)), "{context}": context}
        return "".join(filled.get(piece, piece) for piece in _BLANK.split(str(template)))

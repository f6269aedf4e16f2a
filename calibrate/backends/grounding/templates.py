"""How a model wants its input: the layouts that published groundedness models were trained with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

_BLANK = re.compile(r"(\{premise\}|\{hypothesis\})")
_SECOND_SUPPORTS: Mapping[str, bool] = MappingProxyType({"0": False, "1": True})

Judged = Literal["sentences", "answer"]


@dataclass(frozen=True, slots=True)
class Template:
    """A layout of (premise, hypothesis).

    `parts` are the texts of one input, with {premise} and {hypothesis}. Two parts `as_pair` are a tokenizer's pair;
    else the end-of-sequence token joins them. `opens_with_pad`: a padding token comes first. `judged` is what the model
    was trained to judge, `asks` whether the question stands before the context. `context_tokens` bounds the context
    that it reads at once, `window` the whole input. `usual` are the meanings of labels that only count up.
    """

    name: str
    parts: tuple[str, ...] = ("{premise}", "{hypothesis}")
    as_pair: bool = False
    opens_with_pad: bool = False
    judged: Judged = "sentences"
    asks: bool = False
    context_tokens: int | None = None
    window: int = 2048
    usual: Mapping[str, bool] | None = field(default=None, hash=False)

    def texts(self, premise: str, hypothesis: str) -> list[str]:
        """Fill in every part. What looks like a blank inside a text stays as it is."""
        filled = {"{premise}": premise, "{hypothesis}": hypothesis}
        return ["".join(filled.get(piece, piece) for piece in _BLANK.split(part)) for part in self.parts]

    def premise(self, question: str | None, context: str) -> str:
        """Put the question before the context, where the model was trained so."""
        return f"{question}\n\n{context}" if self.asks and question else context


_FACTCG = (
    "{premise}\n\nChoose your answer: based on the paragraph above can we conclude that "
    '"{hypothesis}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
)
_HHEM = "Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\nHypothesis: {hypothesis}"

TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {
        template.name: template
        for template in (
            Template("pair", as_pair=True, asks=True, window=1024),
            Template("groundcheck", as_pair=True, asks=True, judged="answer"),
            Template("minicheck", context_tokens=400, usual=_SECOND_SUPPORTS),
            # 500 words, of about 1.3 tokens each
            Template("minicheck-t5", ("predict: {premise}", "{hypothesis}"), context_tokens=650),
            Template("factcg", (_FACTCG,), context_tokens=700, usual=_SECOND_SUPPORTS),
            Template("hhem", (_HHEM,), opens_with_pad=True, usual=_SECOND_SUPPORTS),
        )
    }
)

"""A trace: one logged question and answer of a production LLM app, with what the app knew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Source:
    """One retrieved passage, numbered as the answer cites it. Its text is empty where only its score was logged."""

    number: str
    text: str
    title: str | None = None
    retrieval_score: float | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the answer with its log-probability (natural log, <= 0) and the top alternatives."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """One logged question and answer of a production LLM app, with what the app knew.

    `context` is the text the answer was given when it did not come as numbered sources, or as well as them.
    `purged_at` is when its texts were removed: it has none since then, and no detector can score it.
    `group` names traces that share their sources (their errors are correlated). `timestamp` is aware, UTC.
    """

    id: str
    answer: str
    question: str | None = None
    context: str | None = None
    sources: tuple[Source, ...] = ()
    tokens: tuple[Token, ...] | None = None
    alternatives: tuple[str, ...] = ()
    schema: Mapping[str, Any] | bool | None = None
    timestamp: datetime | None = None
    model: str | None = None
    operation: str | None = None
    group: str | None = None
    attributes: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    purged_at: datetime | None = None

    @property
    def context_texts(self) -> tuple[str, ...]:
        """What the answer may rely on: the sources' texts, or the context where no numbered sources are given."""
        texts = tuple([source.text for source in self.sources if source.text])
        return texts or ((self.context,) if self.context else ())

    @property
    def presence(self) -> dict[str, bool]:
        """Whether there is each thing that detectors may need, by the names of `Detector.needs` and `also_needs`."""
        return {
            "answer": bool(self.answer.strip()),
            "question": bool(self.question),
            "retrieved": bool(self.sources),
            "sources": any(source.text for source in self.sources),
            "context": bool(self.context_texts),
            "retrieval_scores": any(source.retrieval_score is not None for source in self.sources),
            "tokens": bool(self.tokens),
            "alternatives": len(self.alternatives) >= 2,
            "schema": self.schema is not None,
        }

    def content_hash(self) -> str:
        """32 hex digits over everything a detector may read. Same content, same score, whatever the trace's id."""
        content: list[Any] = [
            self.model,
            self.question,
            self.context,
            [[s.number, s.text, s.retrieval_score] for s in self.sources],
            self.answer,
            None if self.tokens is None else [[t.text, t.logprob, t.top] for t in self.tokens],
            self.alternatives,
            self.schema,
        ]
        if "retriever" in self.attributes:  # what the sources' retrieval scores mean
            content.append(self.attributes["retriever"])
        text = _CANONICAL.encode(content)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

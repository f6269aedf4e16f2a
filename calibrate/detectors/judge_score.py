"""Judge, sentence by sentence: a language model rates from 0 to 1 how far each sentence goes beyond the context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from calibrate.backends.chat import Reply, Request
from calibrate.backends.chat.prompts import Prompt, render
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.judging import (
    Case,
    ChatDetector,
    answer_sentences,
    explain_nothing_to_judge,
    explain_too_long,
    in_one_line,
    object_reader,
    plain_case,
    prompt_texts,
    read_reply,
    readable,
    require_complete,
)
from calibrate.detectors.shared.replies import Rating, rating
from calibrate.detectors.shared.scoring import claiming, explain_no_claims, limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "reason": {"type": "string"}},
    "required": ["score", "reason"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class JudgeScore(ChatDetector):
    """Asks a language model, after a few examples, to rate how far each sentence of the answer goes beyond the context.
    A high value means that at least one sentence is not in the context, as the model reads it.

    Needs an answer, sources (or a context) and a chat endpoint; one request a sentence. Value: the highest of the
    sentences' ratings, 0 (stated) to 1 (not stated, or contradicted); a rating as in G-Eval (Liu et al. 2023).
    """

    name: ClassVar[str] = "judge_score"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Judge: score per sentence"
    unit: ClassVar[str] = "rating of the worst sentence by a judge, 0 stated to 1 not stated"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5
    prompt: ClassVar[str] = "prompts/judge_score.txt"

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` takes the first number of the reply, wherever it stands, cut to 0..1, and 0 where there "
            "is none: a judge that cannot be read finds nothing wrong. Here to compare."
        },
    )
    aggregate: Literal["max", "mean"] = field(
        default="max", metadata={"help": "The worst sentence decides (max), or the average over sentences (mean)."}
    )

    def plan(self, trace: Trace) -> Case | Score:
        parts, places = claiming(trace), prompt_texts(trace)
        if why := explain_nothing_to_judge(answer_sentences(trace), places) or (
            None if parts else explain_no_claims(trace)
        ):
            return abstained(trace, why)
        texts = [in_one_line(trace.answer[part.start : part.end]) for part in parts]
        if why := explain_too_long(places | {"sentence": max(texts, key=len)}, len(parts), self.longest):
            return abstained(trace, why)
        rendered = [render(self.prompt, places | {"sentence": text}) for text in texts]

        def read(replies: Sequence[Reply]) -> Score:
            return self._score(trace, parts, [_read_rating(*pair) for pair in zip(replies, rendered, strict=True)])

        return Case(tuple(map(_request, rendered)), read)

    def _score(self, trace: Trace, parts: Sequence[tuple[int, int]], ratings: Sequence[Rating]) -> Score:
        values = [rating.value for rating in ratings]
        value = max(values) if self.aggregate == "max" else sum(values) / len(values)
        evidence = [
            Evidence(rating.reason[:600] or f"rated {rating.value:g}", rating.value, start, end)
            for (start, end), rating in zip(parts, ratings, strict=True)
        ]
        return scored(trace, value, limit_evidence(sorted(evidence, key=lambda rating: -(rating.value or 0.0))))

    def plan_plain(self, trace: Trace) -> Case | Score:
        """The common recipe: the whole answer at once, `re.search` for a number."""
        prompt = (
            "On a scale from 0 to 1, how much of the answer is hallucinated? Reply with a number.\n\n"
            f"Context: {chr(10).join(trace.context_texts)}\n\nAnswer: {trace.answer}"
        )
        return plain_case(trace, prompt, self.longest, 32, _plain_value)


def _request(prompt: Prompt) -> Request:
    return Request(prompt.messages, 120, schema=SCHEMA, readable=readable(lambda reply: _read_rating(reply, prompt)))


def _read_rating(reply: Reply, prompt: Prompt) -> Rating:
    return read_reply(reply, prompt, require_complete(reply, lambda text: rating(text, object_reader(prompt))))


def _plain_value(text: str) -> float:
    match = re.search(r"[0-9]+(?:\.[0-9]+)?", text)
    return min(max(float(match.group()[:300]), 0.0), 1.0) if match else 0.0

"""Judge, claim by claim: a language model labels every claim of the answer against the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from calibrate.backends.chat import Reply, Request
from calibrate.backends.chat.prompts import render
from calibrate.backends.text.segments import Part
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.judging import (
    Case,
    ChatDetector,
    answer_sentences,
    explain_nothing_to_judge,
    explain_too_long,
    number_sentences,
    object_reader,
    plain_case,
    prompt_texts,
    read_reply,
    readable,
    require_complete,
)
from calibrate.detectors.shared.replies import Unparsed
from calibrate.detectors.shared.scoring import limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

LABELS = ("supported", "hallucination", "contradiction", "extrapolation")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sentence": {"type": "integer"},
                    "claim": {"type": "string"},
                    "label": {"type": "string", "enum": list(LABELS)},
                    "reason": {"type": "string"},
                },
                "required": ["sentence", "claim", "label", "reason"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class JudgeVerdict(ChatDetector):
    """Asks a language model to label every claim of the answer as supported, hallucination, contradiction or
    extrapolation. A high share means that much of what the answer claims is not in the context, as the model reads it.

    Needs an answer, sources (or a context) and a chat endpoint. Value: claims with another label than supported,
    divided by all claims; one minus the faithfulness of RAGAS (Es et al. 2024).
    """

    name: ClassVar[str] = "judge_verdict"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Judge: claim by claim"
    unit: ClassVar[str] = "share of claims that a judge finds unsupported"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.0
    prompt: ClassVar[str] = "prompts/judge_verdict.txt"

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` looks for HALLUCINAT anywhere in the reply: a repeated question fires, an extrapolation "
            "or a judge that declines reads clean, and the trace's text can give the verdict. Here to compare."
        },
    )

    def plan(self, trace: Trace) -> Case | Score:
        parts = answer_sentences(trace)
        places = prompt_texts(trace) | {"answer": number_sentences(trace, parts)}
        if why := explain_nothing_to_judge(parts, places) or explain_too_long(places, 1, self.longest):
            return abstained(trace, why)
        prompt = render(self.prompt, places)

        def read(reply: Reply) -> list[_Item]:
            parse = object_reader(prompt)
            return read_reply(
                reply, prompt, require_complete(reply, lambda text: _parse_items(parse(text), len(parts)))
            )

        tokens = min(8_192, 300 + 150 * len(parts))
        request = Request(prompt.messages, tokens, schema=SCHEMA, readable=readable(read))
        return Case((request,), lambda replies: _score(trace, parts, read(replies[0])))

    def plan_plain(self, trace: Trace) -> Case | Score:
        """The common recipe, with the texts pasted in."""
        prompt = (
            "You are a hallucination detector. Compare the answer with the context and finish with VERDICT: CLEAN or "
            f"VERDICT: HALLUCINATION.\n\nContext: {chr(10).join(trace.context_texts)}\n\nAnswer: {trace.answer}"
        )
        return plain_case(trace, prompt, self.longest, 512, lambda text: float("HALLUCINAT" in text.upper()))


@dataclass(frozen=True, slots=True)
class _Item:
    sentence: int
    claim: str
    label: str
    reason: str


def _parse_items(reply: dict[str, Any], sentences: int) -> list[_Item]:
    """The items of a reply that keeps to the schema; Unparsed for one that does not."""
    items = reply.get("items")
    if not isinstance(items, list) or len(reply) > 1:
        raise Unparsed('JSON that is not {"items": […]}')
    return [_parse_item(item, sentences) for item in items]


def _parse_item(item: Any, sentences: int) -> _Item:
    if not isinstance(item, dict):
        raise Unparsed("an item that is no object")
    number, label = item.get("sentence"), item.get("label")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= sentences:
        raise Unparsed(f"an item about sentence {str(number)[:40]} of {sentences}")
    if label not in LABELS:
        raise Unparsed(f"the label {str(label)[:40]!r}")
    claim, reason = item.get("claim", ""), item.get("reason", "")
    return _Item(number, claim if isinstance(claim, str) else "", label, reason if isinstance(reason, str) else "")


def _score(trace: Trace, parts: Sequence[Part], items: Sequence[_Item]) -> Score:
    if not items:
        return abstained(trace, "the judge found no claim in the answer")
    evidence = []
    for item in sorted(items, key=lambda item: item.label == "supported"):
        part = parts[item.sentence - 1]
        text = ": ".join(filter(None, (item.label, item.claim[:300])))
        text += f" ({item.reason[:300]})" if item.reason else ""
        evidence.append(Evidence(text, float(item.label != "supported"), part.start, part.end))
    return scored(trace, sum(item.label != "supported" for item in items) / len(items), limit_evidence(evidence))

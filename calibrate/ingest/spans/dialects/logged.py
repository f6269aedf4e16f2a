"""What a span of a client says that keeps the input and the output of each step as the program handed them over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calibrate.ingest.spans.content import SILENT, SpanContent
from calibrate.ingest.spans.dialects import genai
from calibrate.ingest.spans.dialects.base import Holds
from calibrate.ingest.spans.fields.logprobs import parse_tokens
from calibrate.ingest.spans.fields.values import text_or_none
from calibrate.ingest.spans.logged import chat, content


def read_logged(holds: Holds | None, input: Any, output: Any, model: str | None) -> SpanContent:
    """Read one step.

    Parameters
    ----------
    holds : {"answer", "sources", "tool"} or None
        None for a step around others: what it was asked is the question of those that name none.
    input, output : object
        As the span has them.
    model : str or None
    """
    if holds == "answer":
        call, _ = content.model_call(input, output, question=None, model=model)
        question, tokens = text_or_none(call.get("touchstone.question")), parse_tokens(call.get("touchstone.tokens"))
        return replace(genai.read(call), question=question, tokens=tokens)
    if holds == "sources":
        return genai.read(content.retrieval(input, output))
    return SILENT if holds == "tool" else SpanContent(question=chat.question_of(chat.request(input)))


def messages_of(input: Any) -> Any:
    """Write the messages that went into a model as the GenAI conventions do."""
    return [chat.message(turn) for turn in chat.request(input)] if input is not None else None


def result_of(output: Any) -> Any:
    """Read what a tool returned."""
    return chat.tool_result(output) if output is not None else None

"""Attributes for what a call of a model, a retriever or a tool says, as the reader of spans knows them.

They are those of the GenAI conventions of OpenTelemetry, with `touchstone.question` and `touchstone.tokens` for what
the conventions have no attribute for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibrate.ingest.spans.logged import chat
from calibrate.ingest.spans.logged.documents import documents_of

Attributes = dict[str, Any]


def model_call(input: Any, output: Any, *, question: str | None, model: str | None) -> tuple[Attributes, chat.Reply]:
    """Read a call of a model.

    Parameters
    ----------
    input, output : object
        As the export has them.
    question : str or None
        What the whole trace was asked. Where the prompt contains it, the rest of the prompt is a template around it;
        where no message names the user, it is the question.
    model : str or None

    Returns
    -------
    tuple of (dict, Reply)
        No attributes for a call without text: it only calls tools, or nothing of it was logged.
    """
    replied = chat.reply(output)
    if not replied.texts:
        return {}, replied
    turns = chat.request(input)
    prompt = chat.question_of([turn for turn in turns if turn.named]) or question or chat.question_of(turns)
    if prompt and question and question in prompt:
        prompt = question
    attributes: Attributes = {"gen_ai.operation.name": "chat", **_answer(replied.texts)}
    if model:
        attributes["gen_ai.response.model"] = model
    if turns:
        attributes["gen_ai.input.messages"] = [chat.message(turn) for turn in turns]
    if prompt:
        attributes["touchstone.question"] = prompt
    if logprobs := chat.logprobs(output):
        attributes["touchstone.tokens"] = logprobs
    return attributes, replied


def whole_trace(
    output: Any, *, question: str | None, model: str | None, inner: Iterable[Mapping[str, Any]]
) -> Attributes:
    """Read what came out of a whole trace as its answer.

    Parameters
    ----------
    output : object
    question, model : str or None
    inner : iterable of mapping
        Attributes of all calls in it: what they retrieved is what the answer was made from.

    Returns
    -------
    dict
        Empty where the output is no text.
    """
    replied = chat.reply(output, whole=False)
    if not replied.texts:
        return {}
    attributes: Attributes = {"gen_ai.operation.name": "chat", **_answer(replied.texts[:1])}
    turns = [chat.Turn("user", question)] if question else []
    documents: list[Any] = []
    for each in inner:
        documents += each.get("gen_ai.retrieval.documents", ())
        if result := each.get("gen_ai.tool.call.result"):
            turns.append(chat.Turn("tool", result))
    if turns:
        attributes["gen_ai.input.messages"] = [chat.message(turn) for turn in turns]
    if documents:
        attributes["gen_ai.retrieval.documents"] = documents
    if question:
        attributes["touchstone.question"] = question
    if model:
        attributes["gen_ai.response.model"] = model
    return attributes


def retrieval(input: Any, output: Any) -> Attributes:
    """Read a retrieval: the query, and the documents that came back."""
    attributes: Attributes = {"gen_ai.operation.name": "retrieval"}
    if query := chat.question_of(chat.request(input)):
        attributes["gen_ai.retrieval.query.text"] = query
    if documents := documents_of(output):
        attributes["gen_ai.retrieval.documents"] = documents
    return attributes


def tool_call(name: str, output: Any) -> Attributes:
    """Read a call of a tool: what it returned, as text."""
    attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if text := chat.tool_result(output):
        attributes["gen_ai.tool.call.result"] = text
    return attributes


def _answer(texts: tuple[str, ...]) -> Attributes:
    return {
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in texts
        ]
    }  # fmt: skip

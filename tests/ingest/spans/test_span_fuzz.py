"""Whatever the attributes and events of spans hold: they are read, and become whole records or none."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.ingest import Rejected
from calibrate.ingest.record import build
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.reader import Reader
from tests.ingest.spans.making import every_convention, span

WORDS = [
    "role",
    "parts",
    "content",
    "message",
    "type",
    "text",
    "id",
    "score",
    "token",
    "logprob",
    "top_logprobs",
    "tool",
    "tool_result",
    "tool_call_id",
    "output",
    "value",
    "name",
    "kwargs",
    "generations",
    "choices",
    "logprobs",
    "documents",
    "metadata",
    "title",
    "page_content",
    "schema",
    "json_schema",
    "response_format",
    "user",
    "assistant",
    "answer",
    "tool.name",
    "tool.args",
    "final_output",
    "query",
    "prompt",
    "messages",
    "outputs",
    "response_metadata",
]
KEYS = [
    "gen_ai.operation.name",
    "openinference.span.kind",
    "ai.operationId",
    "traceloop.span.kind",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.output",
    "gen_ai.retrieval.documents",
    "gen_ai.prompt.0.role",
    "gen_ai.completion.0.content",
    "gen_ai.completion.x.content",
    "gen_ai.completion.0.logprobs",
    "gen_ai.retrieval.query.text",
    "gen_ai.response.model",
    "gen_ai.response.id",
    "gen_ai.request.structured_output_schema",
    "gen_ai.tool.call.result",
    "gen_ai.tool.name",
    "llm.output_messages.0.message.content",
    "llm.input_messages.0.message.contents.0.message_content.text",
    "llm.model_name",
    "llm.input_messages.0.message.tool_calls.0.tool_call.id",
    "llm.invocation_parameters",
    "retrieval.documents.0.document.content",
    "retrieval.documents.1.document.metadata",
    "retrieval.documents.0.document.score",
    "reranker.output_documents.0.document.content",
    "input.value",
    "output.value",
    "output.mime_type",
    "ai.prompt",
    "ai.prompt.messages",
    "ai.response.text",
    "ai.response.object",
    "ai.schema",
    "ai.toolCall.result",
    "traceloop.entity.output",
    "traceloop.entity.input",
    "touchstone.tokens",
    "touchstone.sources",
    "touchstone.answer",
    "touchstone.schema",
    "touchstone.trace_id",
    "touchstone.question",
    "touchstone.model",
    "session.id",
    "user.id",
    "langsmith.span.kind",
    "langfuse.observation.type",
    "langfuse.observation.input",
    "langfuse.observation.output",
    "langfuse.observation.model.name",
    "mlflow.spanType",
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
    "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response",
    "gen_ai.evaluation.name",
    "gen_ai.evaluation.score.value",
    "gen_ai.evaluation.score.label",
]
KINDS = [
    "chat",
    "retrieval",
    "execute_tool",
    "call_llm",
    "LLM",
    "RETRIEVER",
    "TOOL",
    "RERANKER",
    "ai.generateText.doGenerate",
    "ai.generateObject",
    "ai.toolCall",
    "tool",
    "vector_db_retrieve",
    "llm",
    "retriever",
    "generation",
    "CHAT_MODEL",
]
EVENTS = [
    "gen_ai.user.message",
    "gen_ai.choice",
    "gen_ai.tool.message",
    "gen_ai.content.prompt",
    "gen_ai.evaluation.result",
    "other",
    "gen_ai.client.inference.operation.details",
]

TEXTS = st.text(max_size=6) | st.sampled_from([*WORDS, *KINDS, "\x00", "\ud800", "[", "{", "1e400", "NaN"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)
VALUES = JSON | JSON.map(json.dumps) | st.sampled_from(KINDS)
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)
SPANS = st.tuples(ATTRIBUTES, st.lists(st.tuples(st.sampled_from(EVENTS), ATTRIBUTES), max_size=3))


@settings(max_examples=100, deadline=None)
@given(st.lists(SPANS, max_size=4), st.booleans())
def test_whatever_spans_hold_their_answers_are_whole_records_or_rejected(spans: list[Any], results: bool) -> None:
    made = [span(attributes, events) for attributes, events in spans]
    for answer in answers_of(made, Reader(tool_results=results)):
        assert answer.trace.answer.strip()
        for source in answer.trace.sources:
            assert source.text or source.retrieval_score is not None
            assert source.retrieval_score is None or math.isfinite(source.retrieval_score)
        record = build(row_of(answer, 1), format_name="otlp")
        if isinstance(record, Rejected):
            assert record.reason
            continue
        assert len(record.trace.sources) == len(answer.trace.sources)
        assert (record.trace.tokens is None) == (answer.trace.tokens is None)
        record.trace.answer.encode()
        assert record.trace.content_hash()


@settings(max_examples=60, deadline=None)
@given(SPANS, st.booleans())
def test_conventions_that_a_span_does_not_follow_would_add_nothing(given: Any, results: bool) -> None:
    attributes, events = given
    made, reader = span(attributes, events), Reader(tool_results=results)
    chosen = repr(reader.read(made))  # a NaN is not equal to itself
    with every_convention():
        assert repr(reader.read(made)) == chosen

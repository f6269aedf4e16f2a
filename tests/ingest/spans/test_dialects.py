"""What each instrumentation leaves on its spans, as read from its source or its exports, and where it goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from calibrate.detectors.base import missing
from calibrate.detectors.retrieval_confidence import RetrievalConfidence
from calibrate.ingest.record import build
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.content import Evaluation
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import SpanRecord
from calibrate.types import Record, Source, Token
from tests.ingest.spans.making import answer_of, chat, retrieval, span, trace_of

LOGPROBS = {"content": [{"token": "Yes", "logprob": -0.25, "top_logprobs": [{"token": "No", "logprob": -1.5}]}]}
TOKENS = (Token("Yes", -0.25, (("No", -1.5),)),)
SCHEMA = {"type": "object", "required": ["months"]}


def openinference(kind: str, **more: Any) -> dict[str, Any]:
    return {"openinference.span.kind": kind} | {name.replace("__", "."): value for name, value in more.items()}


def llm(answer: str = "Yes", **more: Any) -> dict[str, Any]:
    return openinference("LLM") | {"llm.output_messages.0.message.content": answer, "input.value": "Who?"} | more


def test_vercel_calls_are_answers_and_the_operation_around_them_lends_its_schema() -> None:
    inner = {
        "ai.operationId": "ai.generateObject.doGenerate",
        "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "A recipe?"}]}]),
        "ai.response.object": '{"months": 2}',
        "ai.response.model": "gpt-4o-mini-2024-07-18",
        "ai.model.id": "gpt-4o-mini",
        "ai.telemetry.functionId": "recipes",
        "ai.telemetry.metadata.sessionId": "s-1",
        "ai.usage.promptTokens": 5,
    }
    outer = {"ai.operationId": "ai.generateObject", "ai.schema": json.dumps(SCHEMA), "ai.response.object": "{}"}
    around = span(outer)
    within = span(inner, parent=around.span_id)
    (answer,) = answers_of([within, around])
    trace = answer.trace
    assert (trace.question, trace.answer, trace.model) == ("A recipe?", '{"months": 2}', "gpt-4o-mini-2024-07-18")
    assert (trace.operation, trace.schema) == ("recipes", SCHEMA)
    assert trace.attributes["session.id"] == "s-1"
    assert not [name for name in trace.attributes if name.startswith(("ai.usage", "ai.response", "ai.prompt"))]


@pytest.mark.parametrize(
    "prompt", ['{"prompt": "Who?"}', '{"messages": [{"role": "user", "content": "Who?"}]}', "Who?"]
)
def test_the_prompt_of_a_vercel_operation_is_a_text_or_messages(prompt: str) -> None:
    call = {"ai.operationId": "ai.streamText.doStream", "ai.prompt": prompt, "ai.response.text": "Yes"}
    assert trace_of(span(call)).question == "Who?"


def test_any_agent_asks_in_the_first_call_and_answers_in_the_last() -> None:
    call = {"gen_ai.operation.name": "call_llm", "gen_ai.request.model": "m"}
    first = call | {
        "gen_ai.input.messages": '[{"role": "user", "content": "What year?"}]',
        "gen_ai.output": '[{"tool.name": "clock", "tool.args": {}}]',
    }
    final = call | {"gen_ai.output": '[{"tool.name": "final_output", "tool.args": {"answer": "{\\"year\\": 2025}"}}]'}
    for output, answer in ((call | {"gen_ai.output": "2025."}, "2025."), (final, '{"year": 2025}')):
        trace = trace_of(span(first), span(output))
        assert (trace.question, trace.answer, trace.model) == ("What year?", answer, "m")


TOOL_MESSAGES = {
    "GenAI": {
        "gen_ai.input.messages": json.dumps(
            [
                {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {}}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "24 months"}]},
                {"role": "user", "parts": [{"type": "text", "content": "Who?"}]},
            ]
        )
    },
    "GenAI, as the API has them": {
        "gen_ai.input.messages": json.dumps(
            [
                {"role": "user", "content": "Who?"},
                {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "search"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "24 months"},
            ]
        )
    },
    "OpenInference": {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Who?",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "search",
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "24 months",
        "llm.input_messages.2.message.tool_call_id": "c1",
    },
    "Vercel": {
        "ai.prompt.messages": json.dumps(
            [
                {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
                {
                    "role": "tool",
                    "content": [
                        {
                            "type": "tool-result",
                            "toolName": "search",
                            "toolCallId": "c1",
                            "output": {"type": "text", "value": "24 months"},
                        }
                    ],
                },
            ]
        )
    },
    "Anthropic": {
        "gen_ai.input.messages": json.dumps(
            [
                {"role": "user", "content": "Who?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "24 months"}]}
                    ],
                },
            ]
        )
    },
}


@pytest.mark.parametrize("name", TOOL_MESSAGES)
def test_results_of_tools_in_the_messages_are_sources_on_request(name: str) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.completion": "Yes"} | TOOL_MESSAGES[name]
    attributes |= {"ai.operationId": "ai.generateText.doGenerate"} if name == "Vercel" else {}
    reader = Reader(tool_results=True)
    trace = trace_of(span(attributes), reader=reader)
    assert trace.sources == (Source("1", "24 months", "search"),)
    assert trace.question == "Who?"
    assert trace_of(span(attributes)).sources == ()


TOOL_SPANS = {
    "LangSmith": {"langsmith.span.kind": "tool", "gen_ai.completion": '{"months": 24}'},
    "Langfuse": {"langfuse.observation.type": "tool", "langfuse.observation.output": '{"months": 24}'},
    "MLflow": {"mlflow.spanType": '"TOOL"', "mlflow.spanOutputs": '{"months": 24}'},
    "ADK": {"gen_ai.operation.name": "execute_tool", "gcp.vertex.agent.tool_response": '{"months": 24}'},
    "GenAI": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": '{"months": 24}'},
    "any-agent": {"gen_ai.operation.name": "execute_tool", "gen_ai.output": '{"months": 24}'},
    "OpenInference": {"openinference.span.kind": "TOOL", "output.value": '{"months": 24}'},
    "Vercel": {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "search", "ai.toolCall.result": '{"months": 24}'},
    "OpenLLMetry": {"traceloop.span.kind": "tool", "traceloop.entity.output": '{"output": {"months": 24}}'},
}


@pytest.mark.parametrize("name", TOOL_SPANS)
def test_results_of_tools_on_their_own_spans_are_sources_on_request(name: str) -> None:
    tool = span({"gen_ai.tool.name": "search"} | TOOL_SPANS[name])
    (source,) = trace_of(span(retrieval("one")), tool, span(chat()), reader=Reader(tool_results=True)).sources[1:]
    assert (source.number, json.loads(source.text), source.title) == ("2", {"months": 24}, "search")
    assert len(trace_of(span(retrieval("one")), tool, span(chat())).sources) == 1


def test_documents_keep_title_and_score_that_frameworks_keep_in_their_metadata() -> None:
    retriever = openinference("RETRIEVER") | {
        "retrieval.documents.0.document.content": "Covered.",
        "retrieval.documents.0.document.metadata": json.dumps({"title": "Warranty", "score": 0.8, "source": "w.md"}),
        "retrieval.documents.1.document.content": "Returns.",
        "retrieval.documents.1.document.metadata": json.dumps({"source": "r.md", "relevance_score": "0.5"}),
    }
    sources = trace_of(span(retriever), span(llm())).sources
    assert sources == (Source("1", "Covered.", "Warranty", 0.8), Source("2", "Returns.", "r.md", 0.5))


def test_openllmetry_keeps_documents_in_what_a_retriever_gave() -> None:
    retriever = {
        "gen_ai.operation.name": "vector_db_retrieve",
        "traceloop.span.kind": "task",
        "traceloop.entity.input": '{"query": "warranty"}',
        "traceloop.entity.output": json.dumps(
            {"documents": [{"page_content": "Covered.", "metadata": {"title": "W"}}]}
        ),
    }
    trace = trace_of(span(retriever), span(chat(question="Covered. Question: warranty")))
    assert trace.sources == (Source("1", "Covered.", "W"),)
    assert trace.question == "warranty"


def test_documents_without_text_keep_their_scores() -> None:
    documents = [{"id": "d1", "score": 0.9}, {"id": "d2", "score": 0.4}]
    retriever = retrieval(**{"gen_ai.retrieval.query.text": "Who?"}) | {
        "gen_ai.retrieval.documents": json.dumps(documents)
    }
    (answer,) = answers_of([span(retriever), span(chat(question="Use it. Who?"))])
    trace = answer.trace
    assert trace.sources == (Source("1", "", "d1", 0.9), Source("2", "", "d2", 0.4))
    assert (trace.question, trace.context_texts) == ("Who?", ())
    assert missing(frozenset({"sources"}), trace) == "no sources"
    assert missing(frozenset({"context"}), trace) == "no context"
    (score,) = RetrievalConfidence().score([trace])
    assert score.value == 0.9
    record = build(row_of(answer, 1), format_name="otlp")
    assert isinstance(record, Record)
    assert record.trace == trace


def test_a_score_reported_apart_from_the_text_goes_to_the_document_of_that_id() -> None:
    apart = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"id": "d1", "score": 0.7}]'}
    texts = openinference("RETRIEVER") | {
        "retrieval.documents.0.document.id": "d1",
        "retrieval.documents.0.document.content": "one",
    }
    assert trace_of(span(apart), span(texts), span(chat())).sources == (Source("1", "one", "d1", 0.7),)


def reply(*texts: str) -> dict[str, Any]:
    choices = [{"message": {"content": text}, "logprobs": LOGPROBS if text == "Yes" else None} for text in texts]
    return {"choices": choices}


REPLIES: dict[str, Any] = {
    "chat completion": reply("Yes"),
    "second choice": reply("Maybe", "Yes"),
    "LangChain": {"generations": [[{"text": "Yes", "generation_info": {"logprobs": LOGPROBS}}]]},
    "LangChain message": {
        "generations": [[{"text": "Yes", "message": {"kwargs": {"response_metadata": {"logprobs": LOGPROBS}}}}]]
    },
    "responses": {"output": [{"content": [{"text": "Yes", "logprobs": LOGPROBS["content"]}]}]},
}


@pytest.mark.parametrize("name", REPLIES)
def test_openinference_carries_log_probabilities_in_the_reply(name: str) -> None:
    attributes = llm() | {"output.value": json.dumps(REPLIES[name]), "output.mime_type": "application/json"}
    assert trace_of(span(attributes)).tokens == TOKENS
    assert trace_of(span(llm() | {"output.value": '{"logprobs": [1, {}]}'})).tokens is None


def test_log_probabilities_may_be_with_a_message_or_in_an_event() -> None:
    output = json.dumps([{"role": "assistant", "content": "Yes", "logprobs": LOGPROBS}])
    assert trace_of(span(chat() | {"gen_ai.output.messages": output})).tokens == TOKENS
    choice = {"index": 0, "message": {"content": "Yes"}, "logprobs": LOGPROBS}
    by_event = span(
        {"gen_ai.operation.name": "chat"}, [("gen_ai.choice", {"gen_ai.event.content": json.dumps(choice)})]
    )
    assert (trace_of(by_event).answer, trace_of(by_event).tokens) == ("Yes", TOKENS)


def test_log_probabilities_on_a_parent_are_those_of_the_only_answer_or_of_the_one_they_spell() -> None:
    own = {"touchstone.tokens": json.dumps(LOGPROBS)}
    assert trace_of(span(own), span(chat("Anything."))).tokens == TOKENS
    answers = list(answers_of([span(own), span(chat("Yes")), span(chat("Maybe"))]))
    assert [answer.trace.tokens for answer in answers] == [TOKENS, None]


SCHEMAS: dict[str, dict[str, Any]] = {
    "OpenLLMetry": {"gen_ai.request.structured_output_schema": json.dumps(SCHEMA)},
    "OpenInference": {
        "llm.invocation_parameters": json.dumps(
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}
        )
    },
    "responses": {
        "llm.invocation_parameters": json.dumps({"text": {"format": {"type": "json_schema", "schema": SCHEMA}}})
    },
    "ours": {"touchstone.schema": json.dumps(SCHEMA)},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_of_the_request_is_that_of_the_answer(name: str) -> None:
    assert trace_of(span(llm() | SCHEMAS[name])).schema == SCHEMA
    assert trace_of(span(llm() | {"llm.invocation_parameters": '{"response_format": {"type": "text"}}'})).schema is None


def test_what_the_program_says_on_a_parent_outranks_what_the_prompt_holds() -> None:
    parent = span(
        {"touchstone.question": "Who?", "touchstone.operation": "faq", "touchstone.schema": json.dumps(SCHEMA)}
    )
    trace = trace_of(parent, span(chat(question="A template. Who was it?")))
    assert (trace.question, trace.operation, trace.schema) == ("Who?", "faq", SCHEMA)


def test_an_answer_that_the_program_gives_has_the_model_and_the_sources_of_the_calls_within_it() -> None:
    handler = span({"touchstone.answer": "Shown."}, ended=2**62, parent=None)
    within = [span(retrieval("one"), parent=handler.span_id), span(chat("Raw."), parent=handler.span_id)]
    answers = list(answers_of([*within, handler]))
    assert [(each.trace.answer, each.trace.model) for each in answers] == [("Shown.", "m-1"), ("Raw.", "m-1")]
    assert [source.text for source in answers[0].trace.sources] == ["one"]


@pytest.mark.parametrize(
    "spelling",
    ["session.id", "gen_ai.conversation.id", "langfuse.session.id", "traceloop.association.properties.session_id"],
)
def test_a_session_has_one_name_whatever_the_convention_calls_it(spelling: str) -> None:
    assert trace_of(span(chat(**{spelling: "s-1", "user.id": "u-1"}))).attributes["session.id"] == "s-1"


def test_a_hook_reads_what_no_convention_has() -> None:
    def read(one: SpanRecord) -> dict[str, Any]:
        reply = one.attributes.get("reply")
        return {} if reply is None else {"answer": reply["text"], "sources": reply["passages"], "model": "mine"}

    reader = Reader(read=read)
    own = span({"reply": {"text": "Yes", "passages": {"4": "one"}}, "gen_ai.request.model": "theirs"})
    trace = trace_of(own, reader=reader)
    assert (trace.answer, trace.model, trace.sources) == ("Yes", "mine", (Source("4", "one"),))
    with pytest.raises(ValueError, match="no field reply"):
        Reader(read=lambda one: {"reply": 1}).read(own)


def result(name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    values = {f"gen_ai.evaluation.{key.replace('__', '.')}": value for key, value in more.items()}
    return ("gen_ai.evaluation.result", {"gen_ai.evaluation.name": name} | values)


def test_evaluations_belong_to_the_answer_they_are_about() -> None:
    first = span(chat("1"), [result("relevance", score__value=0.5, score__label="fair", explanation="So so.")])
    second = span(chat("2") | {"gen_ai.response.id": "r-2"})
    about_first = span({}, [result("toxicity", score__value=0)], parent=first.span_id)
    event = result("faithfulness", score__label="pass")
    by_id = span({}, [(event[0], event[1] | {"gen_ai.response.id": "r-2"}), result("")])
    ours = span(
        {}, [("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "rouge_l", "touchstone.thresholds.version": 2})]
    )
    answers = list(answers_of([first, second, about_first, by_id, ours]))
    assert [answer.evaluations for answer in answers] == [
        (Evaluation("relevance", 0.5, "fair", "So so."), Evaluation("toxicity", 0.0)),
        (Evaluation("faithfulness", None, "pass", None, "r-2"),),
    ]


def test_an_old_conversation_in_events_is_read_in_full() -> None:
    events = [
        ("gen_ai.system.message", {"content": "Be brief."}),
        ("gen_ai.user.message", {"content": "Who?"}),
        ("gen_ai.assistant.message", {"content": "I look."}),
        ("gen_ai.tool.message", {"content": "24 months", "id": "c1"}),
        ("gen_ai.choice", {"message": json.dumps({"role": "assistant", "content": "Yes"})}),
    ]
    answer = answer_of(span({"gen_ai.operation.name": "chat"}, events), reader=Reader(tool_results=True))
    assert (answer.trace.question, answer.trace.answer) == ("Who?", "Yes")
    assert [source.text for source in answer.trace.sources] == ["24 months"]

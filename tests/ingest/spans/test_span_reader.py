"""What is read from a span, by each convention."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from calibrate.ingest.base import Row
from calibrate.ingest.record import build
from calibrate.ingest.spans.dialects import dialects_of, genai, openinference, vercel
from calibrate.ingest.spans.reader import Reader
from calibrate.types import Record, Source, Token
from tests.ingest.spans.making import chat, every_convention, message, retrieval, span, trace_of

PLAIN = {"gen_ai.operation.name": "chat"}

OPENINFERENCE_LLM = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m-1",
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": "Who?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Priestley.",
    "input.value": '{"messages": []}',
    "input.mime_type": "application/json",
}
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
SAID = {"role": "assistant", "content": "Priestley."}
CONVENTIONS: dict[str, tuple[dict[str, Any], tuple[tuple[str, dict[str, Any]], ...]]] = {
    "gen_ai as JSON": (chat("Priestley.", "Who?"), ()),
    "gen_ai structured": (
        PLAIN
        | {
            "gen_ai.request.model": "m-1",
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Who?"}]}],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Priestley."}]}],
        },
        (),
    ),
    "gen_ai details event": (
        PLAIN | {"gen_ai.response.model": "m-1"},
        (
            (
                "gen_ai.client.inference.operation.details",
                {
                    "gen_ai.input.messages": message("user", "Who?"),
                    "gen_ai.output.messages": message("assistant", "Priestley."),
                },
            ),
        ),
    ),
    "gen_ai message events": (
        PLAIN | {"gen_ai.response.model": "m-1"},
        (
            ("gen_ai.user.message", {"gen_ai.event.content": json.dumps({"content": "Who?"})}),
            (
                "gen_ai.choice",
                {"gen_ai.event.content": json.dumps({"index": 0, "message": {"content": "Priestley."}})},
            ),
        ),
    ),
    "gen_ai content events": (
        PLAIN | {"gen_ai.response.model": "m-1"},
        (
            ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": "Who?"}])}),
            ("gen_ai.content.completion", {"gen_ai.completion": "Priestley."}),
        ),
    ),
    "OpenLLMetry": (
        {
            "gen_ai.response.model": "m-1",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Who?",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Priestley.",
        },
        (),
    ),
    "OpenInference": (OPENINFERENCE_LLM, ()),
    "OpenInference contents": (
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m-1",
            "input.value": "Who?",
            "llm.output_messages.0.message.contents.0.message_content.type": "text",
            "llm.output_messages.0.message.contents.0.message_content.text": "Priestley.",
        },
        (),
    ),
    "OpenInference values": (
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m-1",
            "input.value": "Who?",
            "output.value": "Priestley.",
            "output.mime_type": "text/plain",
        },
        (),
    ),
    "LangSmith's client": (
        {
            "langsmith.span.kind": "llm",
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m-1",
            "gen_ai.prompt": json.dumps({"messages": ASKED}),
            "gen_ai.completion": json.dumps({"choices": [{"message": SAID}]}),
        },
        (),
    ),
    "Langfuse's client": (
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": "m-1",
            "langfuse.observation.input": json.dumps(ASKED),
            "langfuse.observation.output": json.dumps(SAID),
        },
        (),
    ),
    "MLflow's client": (
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": json.dumps({"model": "m-0", "messages": ASKED}),
            "mlflow.spanOutputs": json.dumps({"model": "m-1", "choices": [{"message": SAID}]}),
        },
        (),
    ),
    "MLflow's client, texts": (
        {
            "mlflow.spanType": '"LLM"',
            "mlflow.llm.model": '"m-1"',
            "mlflow.spanInputs": '"Who?"',
            "mlflow.spanOutputs": '"Priestley."',
        },
        (),
    ),
    "Google's ADK": (
        {
            "gen_ai.operation.name": "call_llm",
            "gen_ai.request.model": "m-1",
            "gcp.vertex.agent.llm_request": json.dumps({"contents": [{"parts": [{"text": "Who?"}], "role": "user"}]}),
            "gcp.vertex.agent.llm_response": json.dumps(
                {"content": {"parts": [{"text": "Priestley."}], "role": "model"}}
            ),
        },
        (),
    ),
    "ours": ({"touchstone.answer": "Priestley.", "touchstone.question": "Who?", "touchstone.model": "m-1"}, ()),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_gives_the_same_trace(name: str) -> None:
    trace = trace_of(span(*CONVENTIONS[name]))
    assert (trace.question, trace.answer, trace.model, trace.alternatives) == ("Who?", "Priestley.", "m-1", ())


@pytest.mark.parametrize("name", CONVENTIONS)
def test_the_conventions_that_are_not_asked_have_nothing_to_say(name: str) -> None:
    example = span(*CONVENTIONS[name])
    content = Reader().read(example)
    with every_convention():
        assert Reader().read(example) == content


@pytest.mark.parametrize(
    "attributes",
    [
        {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat", "gen_ai.completion": None},
        {"langfuse.observation.type": "generation", "langfuse.observation.output": None},
        {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanOutputs": None},
        {"gen_ai.operation.name": "call_llm", "gcp.vertex.agent.llm_response": None},
    ],
    ids=["LangSmith", "Langfuse", "MLflow", "ADK"],
)
def test_a_call_of_tools_in_a_client_s_span_is_no_answer(attributes: dict[str, Any]) -> None:
    calls = json.dumps({"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find"}}]})
    call = span({key: calls if value is None else value for key, value in attributes.items()})
    assert Reader().holds(call) == "answer"
    assert Reader().read(call).answers == ()


def test_a_client_s_chain_asks_and_does_not_answer() -> None:
    chain = {"langsmith.span.kind": "chain", "gen_ai.operation.name": "chain", "gen_ai.prompt": '{"q": "Who?"}'}
    root = span(chain | {"gen_ai.completion": '{"a": 1}'}, parent=None)
    assert Reader().holds(root) is None
    content = Reader().read(root)
    assert (content.question, content.answers) == ("Who?", ())


def test_what_clients_write_about_themselves_and_what_they_logged_are_no_attributes() -> None:
    kept = trace_of(
        span(
            CONVENTIONS["Langfuse's client"][0]
            | {
                "langfuse.trace.name": "support",
                "langfuse.trace.metadata.tenant": "a",
                "langfuse.observation.metadata.tier": "gold",
                "langfuse.observation.prompt.version": 7,
                "langsmith.metadata.ls_provider": "openai",
            }
        )
    ).attributes
    assert kept == {
        "langfuse.trace.name": "support",
        "langfuse.observation.prompt.version": 7,
        "prompt_version": 7,
        "tenant": "a",
        "tier": "gold",
    }
    assert trace_of(span(CONVENTIONS["MLflow's client"][0])).attributes == {}


def test_names_to_filter_by_are_kept_of_process_prompt_and_agent() -> None:
    process = {"service.name": "shop", "service.version": "1.2", "deployment.environment": "prod", "host.name": "h"}
    prompt = {"gen_ai.prompt.name": "answer", "gen_ai.agent.name": "bot", "llm.prompt_template.version": "v7"}
    call = replace(span(chat(**prompt)), resource=process)
    assert trace_of(call).attributes == prompt | {
        "service.name": "shop",
        "service.version": "1.2",
        "deployment.environment.name": "prod",
        "prompt_version": "v7",
    }
    assert trace_of(span(chat(**prompt, prompt_version="8"))).attributes["prompt_version"] == "8"
    assert trace_of(replace(span(chat()), resource={"service.name": "unknown_service:python"})).attributes == {}


def test_only_the_convention_that_a_span_follows_is_asked() -> None:
    assert dialects_of(OPENINFERENCE_LLM) == [openinference]
    assert dialects_of(("ai.operationId", "ai.prompt")) == [vercel]
    assert genai in dialects_of(chat())
    assert dialects_of(("session.id", "http.route", "aim")) == []


FOUND = [{"page_content": "one", "id": "d0", "score": 0.9}, {"page_content": "two", "id": "d1", "score": 0.8}]
RETURNED = json.dumps(FOUND)
DOCUMENTS = {
    "LangSmith's client": {
        "langsmith.span.kind": "retriever",
        "gen_ai.operation.name": "embeddings",
        "gen_ai.prompt": '{"query": "Who?"}',
        "gen_ai.completion": json.dumps({"output": FOUND}),
    },
    "Langfuse's client": {"langfuse.observation.type": "retriever", "langfuse.observation.output": RETURNED},
    "MLflow's client": {"mlflow.spanType": '"RETRIEVER"', "mlflow.spanOutputs": RETURNED},
    "gen_ai": retrieval("one", "two"),
    "gen_ai structured": {
        "gen_ai.retrieval.documents": [
            {"id": "d0", "score": 0.9, "text": "one"},
            {"id": "d1", "score": 0.8, "text": "two"},
        ]
    },
    "OpenInference": {
        "openinference.span.kind": "RETRIEVER",
        # Not in their order: attributes come as they were set.
        "retrieval.documents.1.document.content": "two",
        "retrieval.documents.1.document.id": "d1",
        "retrieval.documents.1.document.score": 0.8,
        "retrieval.documents.0.document.content": "one",
        "retrieval.documents.0.document.id": "d0",
        "retrieval.documents.0.document.score": 0.9,
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_sources_of_another_span_are_numbered_in_their_order(name: str) -> None:
    retriever = span(DOCUMENTS[name])
    assert Reader().holds(retriever) == "sources"
    assert Reader().holds(retriever) != "answer"
    trace = trace_of(retriever, span(chat()))
    assert [(s.number, s.text, s.title) for s in trace.sources] == [("1", "one", "d0"), ("2", "two", "d1")]
    assert [s.retrieval_score for s in trace.sources] == pytest.approx([0.9, 0.8])


def test_ten_documents_keep_their_order() -> None:
    flat = {f"retrieval.documents.{i}.document.content": f"text {i}" for i in reversed(range(12))}
    trace = trace_of(span({"openinference.span.kind": "RETRIEVER"} | flat), span(chat()))
    assert [s.text for s in trace.sources] == [f"text {i}" for i in range(12)]


def test_what_a_reranker_left_replaces_what_was_retrieved() -> None:
    reranked = {"openinference.span.kind": "RERANKER", "reranker.output_documents.0.document.content": "two"}
    trace = trace_of(span(retrieval("one", "two")), span(reranked), span(chat()))
    assert [s.text for s in trace.sources] == ["two"]


def test_a_document_retrieved_twice_is_one_source_and_one_without_text_none() -> None:
    trace = trace_of(span(retrieval("one")), span(retrieval("one", "")), span(chat()))
    assert [s.text for s in trace.sources] == ["one"]


def test_sources_found_after_the_model_was_asked_are_not_its_own() -> None:
    assert trace_of(span(chat()), span(retrieval("later"))).sources == ()


def test_the_question_is_what_the_retriever_was_asked_where_the_prompt_is_made_around_it() -> None:
    retriever = span(retrieval("one", **{"gen_ai.retrieval.query.text": "Who?"}))
    assert trace_of(retriever, span(chat(question="Use [1] one. Question: Who?"))).question == "Who?"
    assert trace_of(retriever, span(chat(question="Something else"))).question == "Something else"


def test_the_last_of_a_conversation_is_the_question_and_thoughts_and_tool_calls_are_no_answer() -> None:
    history = [{"role": "user", "content": "First?"}, {"role": "assistant", "content": "Yes."}]
    asked = [*history, {"role": "user", "content": [{"type": "text", "text": "And then?"}]}]
    said = [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "text", "content": "No."},
                {"type": "tool_call", "name": "f", "arguments": {"a": 1}},
            ],
        }
    ]
    attributes = PLAIN | {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said)}
    trace = trace_of(span(attributes))
    assert (trace.question, trace.answer) == ("And then?", "No.")


def test_an_answer_that_is_json_stays_as_it_is() -> None:
    for text in ('{"answer": 42}', '[{"content": "x"}]', '{"role'):
        trace = trace_of(span(PLAIN | {"gen_ai.completion": text}))
        assert trace.answer == text
        assert trace_of(span({"touchstone.answer": text})).answer == text


PARTS = [{"type": "text", "text": "No."}, {"type": "image_url", "image_url": {"url": "http://x"}}]


def test_flattened_content_that_is_the_parts_of_a_message_is_their_text() -> None:
    flat = {"gen_ai.prompt.0.role": "user", "gen_ai.completion.0.role": "assistant"}
    trace = trace_of(
        span(flat | dict.fromkeys(("gen_ai.prompt.0.content", "gen_ai.completion.0.content"), json.dumps(PARTS)))
    )
    assert (trace.question, trace.answer) == ("No.", "No.")
    for text in ('[{"type": "dog", "name": "Rex"}]', '[{"text": "x"}]', "[]"):
        assert trace_of(span(flat | {"gen_ai.completion.0.content": text})).answer == text


@pytest.mark.parametrize(
    "said",
    [
        {"role": "assistant", "parts": [{"type": "refusal", "refusal": "I cannot help."}]},
        {"role": "assistant", "parts": [{"type": "refusal", "content": "I cannot help."}]},
        {"role": "assistant", "content": None, "refusal": "I cannot help."},
    ],
)
def test_a_refusal_is_an_answer(said: dict[str, Any]) -> None:
    assert trace_of(span(PLAIN | {"gen_ai.output.messages": json.dumps([said])})).answer == "I cannot help."


def test_other_choices_are_alternatives() -> None:
    choices = [{"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in "abc"]
    trace = trace_of(span(PLAIN | {"gen_ai.output.messages": json.dumps(choices)}))
    assert (trace.answer, trace.alternatives) == ("a", ("b", "c"))


RECORDS: tuple[Any, ...] = (
    {"1": "Covered for 24 months.", "7": "Returns within 30 days."},
    {"3": {"title": "Warranty", "text": "Covered.", "retrieval_score": 0.8}, "1": "Returns within 30 days."},
    [{"number": 4, "text": "Covered."}, {"number": "2", "text": "Covered.", "title": "Again"}],
    [{"text": "Covered."}, "Returns within 30 days."],
    {"1": "Same.", "2": "Same."},
)


@pytest.mark.parametrize("sources", RECORDS)
def test_sources_in_the_shape_of_a_record_are_those_of_the_record(sources: Any) -> None:
    record = build(Row(1, {"trace_id": "x", "answer": "a", "sources": sources}), format_name="jsonl")
    assert isinstance(record, Record)
    ours = {"touchstone.sources": json.dumps(sources)}
    assert trace_of(span(chat(**ours))).sources == record.trace.sources
    assert trace_of(span(ours), span(chat())).sources == record.trace.sources
    renamed = span(chat(**{"app.passages": json.dumps(sources)}))
    assert trace_of(renamed, reader=Reader(names={"sources": "app.passages"})).sources == record.trace.sources


def test_numbers_that_clash_are_given_anew_and_what_is_no_text_is_no_source() -> None:
    one, other = ({"touchstone.sources": json.dumps({"1": text, "2": 5, "3": None})} for text in ("one", "two"))
    found = trace_of(span(one), span(other), span(chat())).sources
    assert [(source.number, source.text) for source in found] == [("1", "one"), ("2", "two")]
    # In a convention of others, a document's `number` may be of anything.
    documents = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": '[{"number": 9, "text": "one"}]'}
    assert [source.number for source in trace_of(span(documents), span(chat())).sources] == ["1"]


def test_tokens_are_read_as_the_api_answers_them_and_all_or_none() -> None:
    content = [{"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "No", "logprob": -2.5}]}]
    for spelling in (content, {"content": content}):
        trace = trace_of(span(chat(**{"touchstone.tokens": json.dumps(spelling)})))
        assert trace.tokens == (Token("Yes", -0.1, (("No", -2.5),)),)
    for broken in ([*content, {"token": "x"}], [{"token": "x", "logprob": "y"}], "nothing", [1], {}):
        assert trace_of(span(chat(**{"touchstone.tokens": json.dumps(broken)}))).tokens is None


def test_attributes_to_sample_by_are_kept_and_content_is_not() -> None:
    root = span(retrieval("one", **{"stakes": "high", "region": "eu", "long": "x" * 500}))
    trace = trace_of(root, span(chat(region="us", **{"http.status": 200, "tags": ["a"]})))
    assert trace.attributes == {"stakes": "high", "region": "us", "http.status": 200}


def test_a_span_names_its_trace_or_gets_a_name() -> None:
    one = span(chat(), trace_id="0AF76519-16CD-43DD-8448-EB211C80319C")
    assert trace_of(one).id == f"0af7651916cd43dd8448eb211c80319c-{one.span_id}"
    assert trace_of(span(chat(**{"touchstone.trace_id": "order-7"}))).id == "order-7"


def test_a_programs_own_names_are_read_and_a_rule_stands_in_for_the_conventions() -> None:
    own = {"answer": "app.reply", "question": "app.asked", "sources": "app.passages"}
    reader = Reader(names=own)
    said = span({"app.reply": "Priestley.", "app.asked": "Who?", "app.passages": ["one", "two"]})
    assert reader.holds(said) == "answer"
    trace = trace_of(said, reader=reader)
    assert (trace.answer, trace.question, [s.text for s in trace.sources]) == ("Priestley.", "Who?", ["one", "two"])
    only_final = Reader(is_llm=lambda one: one.attributes.get("step") == "final")
    assert only_final.holds(span(chat())) != "answer"
    with pytest.raises(ValueError, match="no field anwser; there are: trace_id, question"):
        Reader(names={"anwser": "x"})


@pytest.mark.parametrize("operation", ["embeddings", "execute_tool", "invoke_agent", "create_agent", "retrieval"])
def test_other_operations_hold_no_answer(operation: str) -> None:
    assert Reader().holds(span(chat() | {"gen_ai.operation.name": operation})) != "answer"
    assert Reader().holds(span({"openinference.span.kind": "CHAIN", "output.value": "x"})) != "answer"
    assert Reader().holds(span({"http.request.method": "GET"})) != "answer"


def test_a_span_and_an_imported_line_give_the_same_content() -> None:
    """A trace has one identity, whichever way it came: the store and the processor agree on what was scored."""
    ours = trace_of(span(retrieval("one", "two")), span(chat("Priestley.", "Who?")))
    sources = [{"text": "one", "title": "d0", "retrieval_score": 0.9}, {"text": "two", "retrieval_score": 0.8}]
    line = {"trace_id": "x", "question": "Who?", "answer": "Priestley.", "model": "m-1", "sources": sources}
    record = build(Row(1, line), format_name="jsonl")
    assert isinstance(record, Record)
    assert record.trace.content_hash() == ours.content_hash()
    assert isinstance(ours.sources[0], Source)

"""The forms in which programs log what a model was asked and answered, as their libraries' documentation shows them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate.ingest.spans.logged import chat
from calibrate.ingest.spans.logged.documents import documents_of

ASKED = "Where is the Louvre?"
ANSWERED = "In Paris."
SYSTEM = {"role": "system", "content": "Be brief."}


def constructor(name: str, **kwargs: object) -> dict[str, object]:
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", name], "kwargs": kwargs}


REQUESTS = {
    "text": ASKED,
    "openai": {"model": "m", "messages": [SYSTEM, {"role": "user", "content": ASKED}], "tools": []},
    "openai parts": [{"role": "user", "content": [{"type": "text", "text": ASKED}, {"type": "image_url"}]}],
    "responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": ASKED}]}]},
    "anthropic": {"system": "Be brief.", "messages": [{"role": "user", "content": ASKED}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": ASKED}]}]},
    "gemini text": {"model": "m", "contents": ASKED},
    "langchain": {
        "messages": [[constructor("SystemMessage", content="."), constructor("HumanMessage", content=ASKED)]]
    },
    "langchain in a store": [{"type": "human", "data": {"content": ASKED}}],
    "langchain dumped": [{"type": "human", "content": ASKED, "additional_kwargs": {}}],
    "langchain prompts": {"prompts": [ASKED]},
    "llama-index": {"messages": [{"role": "user", "blocks": [{"block_type": "text", "text": ASKED}]}]},
    "genai conventions": [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}],
    "vercel": {"prompt": [{"role": "user", "content": [{"type": "text", "text": ASKED}]}]},
    "openlit": f"system: Be brief.\nuser: {ASKED}",
    "a chain": {"question": ASKED, "chat_history": []},
    "with a tool's result": [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "Rivoli 99"},
    ],
    "anthropic with a tool's result": [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "find", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "Rivoli 99"}]},
    ],
}
REPLIES = {
    "text": ANSWERED,
    "message": {"role": "assistant", "content": ANSWERED},
    "openai": {
        "id": "1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWERED}}],
        "usage": {},
    },
    "completion": {"choices": [{"text": ANSWERED, "index": 0}]},
    "responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWERED}]},
        ]
    },
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": ANSWERED}],
    },
    "anthropic parts": [{"type": "text", "text": ANSWERED}],
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": ANSWERED}], "role": "model"}}]
    },
    "langchain": {
        "generations": [[{"text": ANSWERED, "message": constructor("AIMessage", content=ANSWERED)}]],
        "llm_output": {},
    },
    "langchain message": constructor("AIMessageChunk", content=ANSWERED),
    "genai conventions": [
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWERED}], "finish_reason": "stop"}
    ],
    "vercel": {"text": ANSWERED, "finishReason": "stop", "toolCalls": []},
    "a refusal": {"choices": [{"message": {"role": "assistant", "content": None, "refusal": ANSWERED}}]},
    "a refusal as a part": {"role": "assistant", "content": [{"type": "refusal", "refusal": ANSWERED}]},
    "an answer and no refusal": {"content": ANSWERED, "refusal": None},
    "under a name": {"answer": ANSWERED},
    "python": str({"role": "assistant", "text": ANSWERED}),
    "a conversation": {"messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}]},
}
CALLS = {
    "openai": {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "find"}}]},
    "anthropic": {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "find", "input": {}}]},
    "gemini": {"content": {"parts": [{"function_call": {"name": "find", "args": {}}}], "role": "model"}},
    "langchain": {
        "generations": [[{"text": "", "message": constructor("AIMessage", content="", tool_calls=[{"id": 1}])}]]
    },
    "responses": {"output": [{"type": "function_call", "name": "find", "arguments": "{}", "call_id": "1"}]},
    "vercel": [{"toolCallId": "1", "toolName": "find", "input": "{}"}],
    "genai conventions": [{"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "find"}]}],
}


def nested(value: object) -> list[object]:
    """As it is, as JSON, and as JSON in JSON."""
    once = json.dumps(value)
    return [value, once] + ([json.dumps([once])] if isinstance(value, dict) and "role" in value else [])


@pytest.mark.parametrize("form", REQUESTS)
def test_the_question_is_the_last_that_the_user_says(form):
    value = REQUESTS[form]
    for given_form in [value] if isinstance(value, str) else [value, json.dumps(value)]:
        assert chat.question_of(chat.request(given_form)) == ASKED


@pytest.mark.parametrize("form", ["with a tool's result", "anthropic with a tool's result"])
def test_what_a_tool_returned_is_a_message_of_the_tool(form):
    assert [turn.text for turn in chat.request(REQUESTS[form]) if turn.role == "tool"] == ["Rivoli 99"]


@pytest.mark.parametrize("form", REPLIES)
def test_the_answer_is_the_text_alone(form):
    value = REPLIES[form]
    for given_form in [value] if isinstance(value, str) else nested(value):
        assert chat.reply(given_form).texts == (ANSWERED,)


@pytest.mark.parametrize("form", CALLS)
def test_a_call_of_tools_is_no_answer(form):
    for given_form in (CALLS[form], json.dumps(CALLS[form])):
        assert chat.reply(given_form) == chat.Reply((), True)


@pytest.mark.parametrize(
    "text", ['{"answer": "In Paris.", "sure": "yes"}', '{"city": "Paris"}', '["Paris", "Lyon"]', "[1] says so."]
)
def test_structured_output_is_the_answer_as_the_model_wrote_it(text):
    assert chat.reply(text).texts == (text,)


def test_several_choices_are_several_answers():
    choices = [{"message": {"role": "assistant", "content": text}} for text in ("In Paris.", "Paris.")]
    assert chat.reply({"choices": choices}).texts == ("In Paris.", "Paris.")


def test_logprobs_are_those_of_the_first_choice():
    content = [{"token": "In", "logprob": -0.5, "top_logprobs": []}]
    openai = {"choices": [{"message": {"content": "In"}, "logprobs": {"content": content}}]}
    langchain = {"generations": [[{"text": "In", "generation_info": {"logprobs": {"content": content}}}]]}
    assert chat.logprobs(openai) == chat.logprobs(json.dumps(langchain)) == content


@pytest.mark.parametrize(
    ("returned", "documents"),
    [
        ("Rivoli 99", [{"content": "Rivoli 99"}]),
        (["a", "b"], [{"content": "a"}, {"content": "b"}]),
        (
            [{"page_content": "a", "metadata": {"source": "x.md", "score": 0.5}}],
            [{"content": "a", "id": "x.md", "score": 0.5}],
        ),
        ({"documents": [{"pageContent": "a", "metadata": {}}]}, [{"content": "a"}]),
        ([constructor("Document", page_content="a", metadata={"id": "7"})], [{"content": "a", "id": "7"}]),
        ([[{"page_content": "a"}, 0.25]], [{"content": "a", "score": 0.25}]),
        ([{"node": {"id_": "n", "text": "a"}, "score": 0.75}], [{"content": "a", "score": 0.75}]),
        (
            {"matches": [{"id": "m", "score": 0.9, "metadata": {"text": "a"}}]},
            [{"id": "m", "score": 0.9, "content": "a"}],
        ),
        ([{"id": "only", "score": 0.1}], [{"id": "only", "score": 0.1}]),
    ],
)
def test_documents_are_found_in_what_a_retriever_returned(returned, documents):
    assert (
        documents_of(returned)
        == documents
        == documents_of(json.dumps(returned) if not isinstance(returned, str) else returned)
    )


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
keys = st.sampled_from(
    [
        "role",
        "content",
        "parts",
        "type",
        "text",
        "message",
        "messages",
        "choices",
        "candidates",
        "generations",
        "output",
        "kwargs",
        "lc",
        "id",
        "data",
        "tool_calls",
        "function_call",
        "documents",
        "node",
        "metadata",
        "score",
        "input",
        "toolCallId",
        "toolName",
        "logprobs",
        "answer",
    ]
)
values = st.recursive(
    scalars | st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "ai", "human", "function"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5) | inner.map(json.dumps) | inner.map(str)
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_anything_at_all_is_read_without_an_error(value):
    assert all(isinstance(turn.text, str) for turn in chat.request(value))
    for whole in (True, False):
        assert all(isinstance(text, str) and text for text in chat.reply(value, whole=whole).texts)
    assert isinstance(chat.tool_result(value), str)
    assert all(set(document) <= {"content", "id", "score"} for document in documents_of(value))
    chat.logprobs(value)
    json.dumps([chat.message(turn) for turn in chat.request(value)])


def test_deep_nesting_ends():
    deep = json.loads("[" * 200 + '{"content": "x"}' + "]" * 200)
    assert chat.request(deep) == [] or chat.request(deep)
    assert documents_of(deep) == []
    assert chat.reply("[" * 100_000).texts == ("[" * 100_000,)
    assert chat.reply("{'" * 50_000).texts

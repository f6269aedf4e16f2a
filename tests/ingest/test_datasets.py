"""Chat logs and published data sets, in small files of their shapes, with what a reader of them would expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ingesting import DictSink, only, reasons

from calibrate.errors import BadInput
from calibrate.ingest import Record, import_file, preview, read

REQUEST = {
    "model": "gpt-4o",
    "n": 3,
    "temperature": 0.3,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": "How long is the warranty?"}]},
    ],
    "tools": [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "months", "schema": {"type": "integer"}}},
}
COMPLETION = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1767225600,
    "model": "gpt-4o-2026-01-01",
    "choices": [
        {"index": 1, "message": {"role": "assistant", "content": "12"}, "finish_reason": "stop", "logprobs": None},
        {
            "index": 0,
            "message": {"role": "assistant", "content": "24", "refusal": None},
            "finish_reason": "stop",
            "logprobs": {
                "content": [
                    {
                        "token": "24",
                        "logprob": -0.25,
                        "bytes": [50, 52],
                        "top_logprobs": [{"token": "24", "logprob": -0.25}, {"token": "12", "logprob": -1.5}],
                    }
                ],
                "refusal": None,
            },
        },
        {"index": 2, "message": {"role": "assistant", "content": "36"}, "finish_reason": "stop"},
    ],
    "usage": {"prompt_tokens": 20, "completion_tokens": 3},
}


def lines(path: Path, *objects: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def records(path: Path) -> list[Record]:
    found = list(read(path))
    assert all(isinstance(each, Record) for each in found), found
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("shape", ["pair", "batch in one file", "batch beside", "stored"])
def test_openai_completions(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "log.jsonl"
    request_line = {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": REQUEST}
    output_line = {
        "id": "batch_req_1",
        "custom_id": "r1",
        "response": {"status_code": 200, "request_id": "q", "body": COMPLETION},
        "error": None,
    }
    if shape == "pair":
        lines(path, {"request": REQUEST, "response": COMPLETION})
    elif shape == "batch in one file":
        lines(path, output_line, request_line)
    elif shape == "batch beside":
        lines(path, output_line)
        lines(tmp_path / "input.jsonl", request_line)
    else:
        stored = {**COMPLETION, **{key: REQUEST[key] for key in ("messages", "tools", "response_format")}}
        path.write_text(json.dumps({"object": "list", "data": [stored], "has_more": False}, indent=2))
    assert preview(path).title == "OpenAI chat log"
    trace = only(path).trace
    assert (trace.id, trace.model) == ("chatcmpl-7", "gpt-4o-2026-01-01")
    assert (trace.question, trace.answer) == ("How long is the warranty?", "24")
    assert trace.alternatives == ("12", "36")
    assert trace.tokens is not None
    assert [(token.text, token.logprob, token.top) for token in trace.tokens] == [
        ("24", -0.25, (("24", -0.25), ("12", -1.5)))
    ]
    assert trace.schema == {"type": "integer"}
    assert trace.timestamp is not None
    assert trace.timestamp.isoformat() == "2026-01-01T00:00:00+00:00"
    assert (trace.attributes["tools"], trace.attributes["finish_reason"]) == ("search", "stop")


def batch(folder: Path, name: str, question: str, answer: str, custom_id: str = "request-1") -> tuple[Path, Path]:
    """The two files of a batch of one request."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": question}]}
    message = {"index": 0, "message": {"role": "assistant", "content": answer}}
    response = {"status_code": 200, "body": {"id": f"chatcmpl-{answer}", "model": "gpt-4o", "choices": [message]}}
    asked = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return (
        lines(folder / f"{name}_input.jsonl", asked),
        lines(folder / f"{name}_output.jsonl", {"id": name, "custom_id": custom_id, "response": response}),
    )


def test_the_batches_of_a_folder_keep_their_questions(tmp_path: Path) -> None:
    for name, question, answer in (("faq", "What is the warranty?", "Two years."), ("hr", "How long?", "Thirty days.")):
        batch(tmp_path, name, question, answer)
    for number in range(30):  # however many other batches there are
        batch(tmp_path, f"a{number}", f"Question {number}?", f"{number}")
    assert only(tmp_path / "faq_output.jsonl").trace.question == "What is the warranty?"
    assert only(tmp_path / "hr_output.jsonl").trace.question == "How long?"


def test_an_id_that_several_requests_have_is_refused(tmp_path: Path) -> None:
    for name in ("faq", "hr"):
        batch(tmp_path, name, f"{name}?", name)
    output = (tmp_path / "hr_output.jsonl").rename(tmp_path / "batch_68ab_output.jsonl")
    said = reasons(output)[1]
    assert "'request-1': faq_input.jsonl, hr_input.jsonl have different requests of that id" in said
    assert "a folder of its own" in said
    lines(tmp_path / "hr_input.jsonl", json.loads((tmp_path / "faq_input.jsonl").read_text()))
    assert only(output).trace.question == "faq?"  # a copy tells the same
    own = output.read_text() + (tmp_path / "faq_input.jsonl").read_text().replace("faq?", "mine?")
    output.write_text(own)
    assert only(output).trace.question == "mine?"
    (tmp_path / "faq_input.jsonl").unlink()
    (tmp_path / "hr_input.jsonl").unlink()
    assert only(tmp_path / "faq_output.jsonl").trace.question is None  # a request that was answered beside it


def test_the_report_names_the_file_of_the_requests(tmp_path: Path) -> None:
    batch(tmp_path, "faq", "What is the warranty?", "Two years.")
    report = import_file(DictSink(), tmp_path / "faq_output.jsonl")
    assert (report.imported, report.read_with) == (1, ("faq_input.jsonl",))


def test_a_stored_completions_list_on_one_line(tmp_path: Path) -> None:
    stored = [{**COMPLETION, "id": name, "messages": REQUEST["messages"]} for name in ("a", "b")]
    for document in (
        {"object": "list", "data": stored, "has_more": False},
        {"has_more": False, "data": stored},
    ):
        for ending in ("", "\n"):
            path = tmp_path / "stored.json"
            path.write_text(json.dumps(document) + ending)
            assert [record.trace.id for record in records(path)] == ["a", "b"]


def test_a_document_of_records_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "records": [{"answer": "a"}, {"answer": "b"}]}))
    assert [record.trace.answer for record in records(path)] == ["a", "b"]


def test_what_tools_returned_counts_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "How long?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "24 months"},
    ]
    items = [
        {"role": "user", "content": "How long?"},
        {"type": "function_call", "call_id": "c", "name": "search", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "24 months"},
    ]
    message = {"type": "message", "content": [{"type": "output_text", "text": "Two years."}]}
    path = lines(
        tmp_path / "log.jsonl",
        {"request": {"messages": chat}, "response": COMPLETION},
        {"request": {"input": items}, "response": {"id": "r", "object": "response", "output": [message]}},
    )
    assert [record.trace.sources for record in records(path)] == [(), ()]
    monkeypatch.setenv("TOUCHSTONE_TOOL_RESULTS", "1")
    for record in records(path):
        assert [(source.title, source.text) for source in record.trace.sources] == [("search", "24 months")]


def test_a_line_without_an_answer_says_what_it_is(tmp_path: Path) -> None:
    failed = {"status_code": 400, "body": {"error": {"message": "bad"}}}
    path = lines(tmp_path / "output.jsonl", {"custom_id": "r", "response": failed, "error": None})
    assert reasons(path) == {1: "the request failed with the status 400: bad"}
    http = {"request": {"body": REQUEST}, "response": {"status_code": 200, "body": COMPLETION}}
    assert only(lines(tmp_path / "http.jsonl", http)).trace.question == "How long is the warranty?"
    reply = {"id": "m", "type": "message", "content": [{"type": "text", "text": "Two years."}]}
    said = reasons(lines(tmp_path / "other.jsonl", {"request": REQUEST, "response": reply}))[1]
    assert "none of OpenAI's API" in said
    assert "'id', 'type', 'content'" in said


def test_openai_conversations_and_the_responses_api(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Who?"}
    tune = lines(
        tmp_path / "tune.jsonl",
        {"messages": [asked, {"role": "assistant", "content": "She did."}]},
        {"messages": [asked]},
    )
    first = next(read(tune))
    assert isinstance(first, Record)
    assert (first.trace.question, first.trace.answer) == ("Who?", "She did.")
    assert reasons(tune) == {2: "messages: no text of the assistant is among them"}
    token = {"token": "She", "logprob": -0.5, "bytes": [], "top_logprobs": []}
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "She did.", "logprobs": [token]}]},
    ]
    response = {"id": "resp_1", "object": "response", "created_at": 1767225600, "model": "m", "output": output}
    request = {"input": "Who?", "text": {"format": {"type": "json_schema", "schema": {"type": "string"}}}}
    trace = only(lines(tmp_path / "new.jsonl", {"request": request, "response": response})).trace
    assert (trace.id, trace.question, trace.answer, trace.schema) == ("resp_1", "Who?", "She did.", {"type": "string"})
    assert trace.tokens is not None
    assert trace.tokens[0].logprob == -0.5


def test_what_the_model_did_not_answer_is_rejected(tmp_path: Path) -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "search"}}]}
    path = lines(
        tmp_path / "log.jsonl",
        {"request": REQUEST, "response": {**COMPLETION, "choices": [{"index": 0, "message": called}]}},
        {"request": REQUEST, "response": {**COMPLETION, "choices": []}},
        {"request": REQUEST, "response": {"error": {"message": "no"}}},
        {"request": REQUEST, "response": COMPLETION},
    )
    assert sorted(reasons(path)) == [1, 2, 3]
    requests = lines(tmp_path / "batch.jsonl", {"custom_id": "r", "method": "POST", "url": "/v1/x", "body": REQUEST})
    with pytest.raises(BadInput, match="holds requests of the batch API and no answer"):
        list(read(requests))


RESPONSE = {
    "id": "9",
    "source_id": "14",
    "model": "llama-2-7b-chat",
    "temperature": 0.7,
    "labels": [
        {
            "start": 4,
            "end": 11,
            "text": "at 500°",
            "meta": "HIGH INTRO OF NEW INFO",
            "label_type": "Evident Baseless Info",
            "implicit_true": False,
            "due_to_null": False,
        }
    ],
    "split": "test",
    "quality": "good",
    "response": "Bake at 500° for an hour.",
}
PASSAGES = "passage 1:Preheat the oven.\nWash them.\n\npassage 2:Serve with vinegar.\n\n"
QUESTION = {
    "source_id": "14",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {"question": "how to prepare beets", "passages": PASSAGES},
    "prompt": "Briefly answer the following question:\nhow to prepare beets\n…",
}
SUMMARY = {
    "source_id": "11",
    "task_type": "Summary",
    "source": "CNN/DM",
    "source_info": "The court has a new member.",
    "prompt": "Summarize the following news within 72 words:\nThe court has a new member.\noutput:",
}


@pytest.mark.parametrize("given", ["response.jsonl", "source_info.jsonl"])
def test_ragtruth(tmp_path: Path, given: str) -> None:
    clean = {**RESPONSE, "id": "10", "source_id": "11", "labels": [], "response": "A new member."}
    lines(tmp_path / "response.jsonl", RESPONSE, clean, {**RESPONSE, "id": "11", "source_id": "404"})
    lines(tmp_path / "source_info.jsonl", QUESTION, SUMMARY)
    first, second, third = read(tmp_path / given)
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.trace.id, first.trace.model, first.trace.operation) == ("ragtruth-9", "llama-2-7b-chat", "QA")
    assert first.trace.question == "how to prepare beets"
    assert {source.number: source.text for source in first.trace.sources} == {
        "1": "Preheat the oven.\nWash them.",
        "2": "Serve with vinegar.",
    }
    assert first.trace.group == "RAGTruth/14"
    (label,) = first.labels
    (span,) = label.spans
    assert (label.verdict, first.trace.answer[span.start : span.end]) == ("hallucinated", " at 500")
    assert span.kind == "Evident Baseless Info"
    assert second.trace.question == "Summarize the following news within 72 words:"
    assert [source.text for source in second.trace.sources] == ["The court has a new member."]
    assert [label.verdict for label in second.labels] == ["clean"]
    assert "there is no source '404'" in third.reason  # type: ignore[union-attr]


def test_ragtruth_with_one_file_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"one of RAGTruth's two files, and source_info\.jsonl is not beside it"):
        list(read(lines(tmp_path / "response.jsonl", RESPONSE)))
    shown = preview(tmp_path / "response.jsonl")
    assert (shown.title, "not beside it" in str(shown.problem)) == ("RAGTruth data set", True)


def test_halueval(tmp_path: Path) -> None:
    """Its files end in .json and are JSON lines."""
    qa = lines(
        tmp_path / "qa_data.json",
        {
            "knowledge": "Arthur's Magazine was first. First for Women came later.",
            "question": "Which magazine was first?",
            "right_answer": "Arthur's Magazine",
            "hallucinated_answer": "First for Women was first.",
        },
    )
    right, wrong = records(qa)
    assert (right.trace.answer, wrong.trace.answer) == ("Arthur's Magazine", "First for Women was first.")
    assert [record.labels[0].verdict for record in (right, wrong)] == ["clean", "hallucinated"]
    assert right.trace.group == wrong.trace.group
    assert right.trace.sources[0].text.startswith("Arthur's Magazine was first.")
    assert (right.trace.question, right.trace.operation) == ("Which magazine was first?", "qa")
    history = "[Human]: Do you like him? [Assistant]: Yes. [Human]: Why?"
    dialogue = {"knowledge": "He plays.", "dialogue_history": history, "right_response": "He plays.",
                "hallucinated_response": "He sings."}  # fmt: skip
    first, second = records(lines(tmp_path / "dialogue_data.json", dialogue))
    assert (first.trace.question, first.trace.answer, second.trace.answer) == (history, "He plays.", "He sings.")
    summary = {"document": "A storm came.", "right_summary": "A storm.", "hallucinated_summary": "A flood."}
    first, second = records(lines(tmp_path / "summarization_data.json", summary))
    assert (first.trace.sources[0].text, first.trace.question, second.trace.answer) == (
        "A storm came.",
        None,
        "A flood.",
    )
    general = lines(
        tmp_path / "general_data.json",
        {"ID": "2", "user_query": "Homophones?", "chatgpt_response": "gate, gait", "hallucination_label": "yes"},
        {
            "ID": "3",
            "user_query": "Two?",
            "chatgpt_response": "One and three.",
            "hallucination": "yes",
            "hallucination_spans": ["three", "not in it"],
        },
        {"ID": "4", "user_query": "Three?", "chatgpt_response": "3", "hallucination_label": "perhaps"},
    )
    first, second, third = read(general)  # type: ignore[assignment]
    assert (first.trace.id, first.trace.question, first.labels[0].verdict) == (
        "halueval-general-2", "Homophones?", "hallucinated"
    )  # fmt: skip
    assert [(span.start, span.end) for span in second.labels[0].spans] == [(8, 13)]
    assert third == next(each for each in read(general) if not isinstance(each, Record))


@pytest.mark.parametrize("as_list", [True, False])
def test_selfcheckgpt(tmp_path: Path, as_list: bool) -> None:
    text = "He was a soldier. He was born in 1708.  He died in London."
    passage = {
        "gpt3_text": text,
        "wiki_bio_text": "He was born in 1650.",
        "gpt3_sentences": ["He was a soldier.", "He was born in 1708.", "He died in London."],
        "annotation": ["accurate", "major_inaccurate", "minor_inaccurate"],
        "wiki_bio_test_idx": 62464,
        "gpt3_text_samples": ["He was a sailor.", "He was a baron."],
    }
    path = tmp_path / "dataset.json"
    if as_list:
        path.write_text(json.dumps([passage, {**passage, "annotation": ["accurate"]}]))
    else:
        lines(path, passage, {**passage, "annotation": ["accurate"]})
    first, second = read(path)
    assert isinstance(first, Record)
    assert (first.trace.id, first.trace.answer, first.trace.question) == ("wikibio-62464", text, None)
    assert first.trace.alternatives == ("He was a sailor.", "He was a baron.")
    assert first.trace.sources == ()
    (label,) = first.labels
    assert label.verdict == "hallucinated"
    assert [(text[span.start : span.end], span.kind) for span in label.spans] == [
        ("He was born in 1708.", "major_inaccurate"),
        ("He died in London.", "minor_inaccurate"),
    ]
    assert "annotation: 1 for 3 sentences" in second.reason  # type: ignore[union-attr]

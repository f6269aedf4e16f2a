"""A small program that asks a model in the ways people do, under one instrumentation: what is read from its spans.

    python -m tests.runtime.otel_clients genai|openinference|openinference-langchain|openllmetry|openllmetry-langchain

Prints one line of JSON for each answer. The endpoint is local and answers as OpenAI's does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUESTION, ANSWER, PASSAGE = "How long is the warranty?", "24 months.", "Covered for 24 months."
LOGPROBS = [
    {"token": "24", "logprob": -0.1, "bytes": None, "top_logprobs": [{"token": "12", "logprob": -2.0, "bytes": None}]},
    {"token": " months.", "logprob": -0.2, "bytes": None, "top_logprobs": []},
]
SCHEMA = {
    "type": "object",
    "properties": {"months": {"type": "integer"}},
    "required": ["months"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "warranty", "schema": SCHEMA, "strict": True}}
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
MESSAGES: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
WITH_TOOL = [
    *MESSAGES,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": PASSAGE},
]


class Endpoint(BaseHTTPRequestHandler):
    """Chat completions, streamed or not, and responses, with log-probabilities where they are asked for."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/responses"):
            return self.reply(json.dumps(response()))
        if body.get("stream"):
            chunks = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in stream(bool(body.get("logprobs"))))
            return self.reply(f"{chunks}data: [DONE]\n\n", "text/event-stream")
        return self.reply(json.dumps(completion(body.get("n") or 1, bool(body.get("logprobs")))))

    def reply(self, text: str, kind: str = "application/json") -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def completion(n: int, logprobs: bool) -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"message": message, "logprobs": {"content": LOGPROBS} if logprobs else None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": index, **choice} for index in range(n)]
    head = {"id": "r-1", "object": "chat.completion", "created": 1, "model": "stub-1"}
    return {**head, "choices": choices, "usage": usage}


def stream(logprobs: bool) -> list[dict[str, Any]]:
    head = {"id": "r-1", "object": "chat.completion.chunk", "created": 1, "model": "stub-1"}
    deltas: list[dict[str, Any]] = [
        {
            "delta": {"role": "assistant", "content": entry["token"]},
            "logprobs": {"content": [entry]} if logprobs else None,
            "finish_reason": None,
        }
        for entry in LOGPROBS
    ]
    deltas.append({"delta": {}, "finish_reason": "stop"})
    return [{**head, "choices": [{"index": 0, **delta}]} for delta in deltas]


def response() -> dict[str, Any]:
    part = {"type": "output_text", "text": ANSWER, "annotations": [], "logprobs": LOGPROBS}
    message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    head = {"id": "resp-1", "object": "response", "created_at": 1, "status": "completed", "model": "stub-1"}
    return {**head, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": [message]}


def instrument(client: str, provider: Any) -> None:
    """Switch the instrumentation on, as its own documentation says."""
    if client == "genai":
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAi

        GenAi().instrument(tracer_provider=provider)
    elif client == "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference

        OpenInference().instrument(tracer_provider=provider)
    elif client == "openinference-langchain":
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=provider)
    else:
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor as OpenLlmetry

        OpenLlmetry().instrument(tracer_provider=provider)
        if client == "openllmetry-langchain":
            from opentelemetry.instrumentation.langchain import LangchainInstrumentor as Chains

            Chains().instrument(tracer_provider=provider)


def openai_calls(client: str, url: str, provider: Any) -> dict[str, Callable[[], Any]]:
    import openai

    api = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    chat = api.chat.completions.create
    logprobs = {"logprobs": True, "top_logprobs": 1}
    calls: dict[str, Callable[[], Any]] = {
        "chat": lambda: chat(model="stub", messages=MESSAGES, **logprobs),
        "stream": lambda: list(chat(model="stub", messages=MESSAGES, stream=True, **logprobs)),
        "n=3": lambda: chat(model="stub", messages=MESSAGES, n=3),
        "responses": lambda: api.responses.create(
            model="stub", input=QUESTION, include=["message.output_text.logprobs"]
        ),
        "schema": lambda: chat(model="stub", messages=MESSAGES, response_format=FORMAT),
        "tools": lambda: chat(model="stub", messages=WITH_TOOL),
    }
    if client == "genai":
        calls["retrieval"] = lambda: retrieve(chat, provider)
    return calls


def retrieve(chat: Callable[..., Any], provider: Any) -> None:
    """A retriever's span as the conventions' own helper makes it: documents have an id and a score, and no text."""
    from opentelemetry.util.genai.handler import get_telemetry_handler
    from opentelemetry.util.genai.types import RetrievalDocument

    with provider.get_tracer("app").start_as_current_span("answer"):
        with get_telemetry_handler(tracer_provider=provider).retrieval(request_model="embedder") as retrieval:
            retrieval.documents = [RetrievalDocument(id="w.md", score=0.83)]
        chat(model="stub", messages=MESSAGES)


def langchain_calls(url: str) -> dict[str, Callable[[], Any]]:
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough
    from langchain_openai import ChatOpenAI

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return [Document(page_content=PASSAGE, metadata={"title": "Warranty", "score": 0.83})]

    model = ChatOpenAI(model="stub", base_url=url, api_key="none", max_retries=0)
    found: Any = {"context": Retriever(), "question": RunnablePassthrough()}
    prompt = found | ChatPromptTemplate.from_template("Use {context}. Question: {question}")
    chain = prompt | model.bind(logprobs=True, top_logprobs=1)
    called = AIMessage("", tool_calls=[{"id": "c1", "name": "search", "args": {}}])
    return {
        "chain": lambda: chain.invoke(QUESTION),
        "stream": lambda: list(chain.stream(QUESTION)),
        "schema": lambda: (prompt | model.bind(response_format=FORMAT)).invoke(QUESTION),
        "tools": lambda: model.invoke([HumanMessage(QUESTION), called, ToolMessage(PASSAGE, tool_call_id="c1")]),
    }


def main(client: str) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from calibrate.ingest.spans.answers import answers_of
    from calibrate.ingest.spans.reader import Reader
    from calibrate.runtime.otel.conversion import record_of

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(client, provider)
    calls = langchain_calls(url) if "langchain" in client else openai_calls(client, url, provider)
    for name, call in calls.items():
        exporter.clear()
        call()
        spans = [record_of(span) for span in exporter.get_finished_spans()]
        for answer in answers_of(spans, Reader(tool_results=True)):
            seen = answer.trace
            print(
                json.dumps(
                    {
                        "call": name,
                        "question": seen.question,
                        "answer": seen.answer,
                        "model": seen.model,
                        "alternatives": len(seen.alternatives),
                        "sources": [[each.text, each.title, each.retrieval_score] for each in seen.sources],
                        "tokens": [token.text for token in seen.tokens or ()],
                        "schema": seen.schema,
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1])

"""A small RAG program that watches itself for hallucinations: OpenTelemetry, a language model, Touchstone.

    python -m examples.rag.app --url http://127.0.0.1:8123/v1

It answers questions about a library from a handful of notices. Every answer is three spans, by the conventions of
OpenTelemetry for generative AI; the span processor scores it and sends what it found as a fourth. The spans go to a
collector in this process, the answers to a file that `python -m calibrate import` takes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openai import APIConnectionError, APIStatusError, OpenAI, OpenAIError
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from calibrate.errors import TouchstoneError
from calibrate.runtime.otel import TouchstoneSpanProcessor, trace_id_of

HERE = Path(__file__).parent
NOTICES = {
    "hours": "The library is open from 9 to 18 on weekdays and from 10 to 14 on Saturdays. It is closed on Sundays.",
    "loans": "Books are lent for 28 days. A loan can be renewed twice, unless another reader has reserved the book.",
    "fines": "A book that is late costs 20 cents a day, and never more than 8 euros. Children under 14 pay no fines.",
    "cards": "A library card is free. To get one, bring an identity card and a letter that shows your address.",
    "rooms": "Study rooms seat six people. They are booked at the front desk for at most three hours a day.",
    "music": "The music room has two pianos. Headphones are lent at the desk; singing is welcome after 16 o'clock.",
}
QUESTIONS = (
    "How long may I keep a book?",
    "What does a late book cost?",
    "When is the library open on Saturdays?",
    "How do I get a library card?",
    "Which poet opened the library, and in what year?",  # no notice says
)
PROMPT = """Answer in one short sentence, from these notices only, and cite them like [1].

{notices}

Question: {question}"""
COMMON = {"a", "an", "and", "do", "does", "how", "i", "in", "is", "may", "of", "on", "or", "the", "to", "what", "when"}


class Library:
    """Retrieves, asks, and traces both."""

    def __init__(self, client: OpenAI, model: str, tracer: trace.Tracer, traces: Path) -> None:
        self.client, self.model, self.tracer, self.traces = client, model, tracer, traces

    def answer(self, question: str) -> str:
        with self.tracer.start_as_current_span("answer", attributes={"reader": "desk-1"}):
            return self.generate(question, self.retrieve(question))

    def retrieve(self, question: str, most: int = 2) -> list[dict[str, Any]]:
        """The notices that share most words with the question."""
        with self.tracer.start_as_current_span("retrieval notices") as span:
            wanted = words(question)
            scored = [(len(wanted & words(text)) / len(wanted), name, text) for name, text in NOTICES.items()]
            best = sorted(scored, key=lambda entry: (-entry[0], entry[1]))[:most]
            documents = [{"id": name, "score": score, "content": text} for score, name, text in best]
            span.set_attribute("gen_ai.operation.name", "retrieval")
            span.set_attribute("gen_ai.retrieval.query.text", question)
            span.set_attribute("gen_ai.retrieval.documents", json.dumps(documents))
            return documents

    def generate(self, question: str, documents: Sequence[dict[str, Any]]) -> str:
        numbered = enumerate(documents, start=1)
        notices = "\n".join(f"[{number}] {document['content']}" for number, document in numbered)
        prompt = PROMPT.format(notices=notices, question=question)
        with self.tracer.start_as_current_span(f"chat {self.model}", kind=trace.SpanKind.CLIENT) as span:
            reply = self.client.chat.completions.create(
                model=self.model,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=48,
                logprobs=True,
            )
            choice = reply.choices[0]
            answer = choice.message.content or ""
            logged = (choice.logprobs and choice.logprobs.content) or []
            tokens = [{"token": token.token, "logprob": token.logprob} for token in logged]
            span.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": self.model,
                    "gen_ai.response.model": reply.model,
                    "gen_ai.response.id": reply.id,
                    "gen_ai.input.messages": message("user", prompt),
                    "gen_ai.output.messages": message("assistant", answer, finish_reason=choice.finish_reason),
                    "touchstone.tokens": json.dumps(tokens),
                }
            )
            self.log(trace_id_of(span.get_span_context()), question, answer, documents, tokens, reply.model)
            return answer

    def log(self, name: str, question: str, answer: str, documents: Any, tokens: Any, model: str) -> None:
        """One line that `python -m calibrate import` takes."""
        line = {
            "trace_id": name,
            "timestamp": datetime.now(UTC).isoformat(),
            "question": question,
            "answer": answer,
            "sources": [
                {"title": document["id"], "text": document["content"], "retrieval_score": document["score"]}
                for document in documents
            ],
            "tokens": tokens,
            "model": model,
            "operation": "chat",
        }
        with self.traces.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower())) - COMMON


def message(role: str, text: str, **more: Any) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}], **more}])


def wait(client: OpenAI, seconds: float = 60) -> None:
    """Until the endpoint listens: a server that was just started loads its model first. Raises what openai raises."""
    until, announced = time.monotonic() + seconds, False
    while True:
        try:
            client.with_options(timeout=5).models.list()
        except APIStatusError:  # it has no such list, but it is there
            return
        except APIConnectionError:
            if time.monotonic() > until:
                raise
            if not announced:
                print(f"waiting for {client.base_url}, {seconds:g} seconds at most", file=sys.stderr)
            announced = True
            time.sleep(0.5)
        else:
            return


def run(client: OpenAI, model: str, *, thresholds: Path, traces: Path) -> Sequence[ReadableSpan]:
    """Answers the questions; gives the spans that came to the collector."""
    provider, collector = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(TouchstoneSpanProcessor(thresholds, tracer_provider=provider))
    provider.add_span_processor(BatchSpanProcessor(collector))  # a program would have an OTLP exporter here
    library = Library(client, model, provider.get_tracer("library"), traces)
    for question in QUESTIONS:
        library.answer(question)
    provider.force_flush()  # in the order they were added: first the scoring, then the export
    provider.shutdown()
    return collector.get_finished_spans()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", required=True, help="of a chat endpoint that speaks the OpenAI API")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--thresholds", type=Path, default=HERE / "thresholds.json")
    parser.add_argument("--traces", type=Path, default=Path("traces.jsonl"))
    args = parser.parse_args()
    client = OpenAI(base_url=args.url, api_key="none", max_retries=0)
    try:
        wait(client)
        spans = run(client, args.model, thresholds=args.thresholds, traces=args.traces)
    except APIConnectionError:
        sys.exit(f"nobody answers at {args.url}: start a chat endpoint there, as examples/rag/README.md says")
    except OpenAIError as error:
        sys.exit(f"{args.url}: {error}")
    except TouchstoneError as error:
        sys.exit(str(error))
    for result in spans:
        if result.name == "touchstone.detector.result":
            (asked,) = [span for span in spans if result.parent and span.context.span_id == result.parent.span_id]
            ((answer,),) = [one["parts"] for one in json.loads(asked.attributes["gen_ai.output.messages"])]
            print(f"{result.attributes['touchstone.verdict']}: {answer['content']!r}")
            print(*(f"    {reason}\n" for reason in result.attributes["touchstone.reasons"]), sep="", end="")
    print(f"traces are in {args.traces}")


if __name__ == "__main__":
    main()

"""Answers that a program scores reach the real receiver as they were scored, and each is accounted for."""

from __future__ import annotations

import gzip
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

from calibrate import registry
from calibrate.detectors.word_overlap import WordOverlap
from calibrate.errors import BadInput
from calibrate.ingest.spans.answers import answers_of
from calibrate.ingest.spans.otlp import spans_of_json
from calibrate.ingest.spans.record import SpanRecord
from calibrate.runtime.otel import HandOverCounts, TouchstoneSpanProcessor
from calibrate.types import Score, Source, Token, Trace
from db import Store, open_store
from tests.receiving.commands import running, wait_until
from tests.receiving.making import stored
from tests.runtime.otel_making import FILE, TRUE, Program, chat, file_of, retrieval

ROOT = Path(__file__).parents[2]
TOKEN = "secret"


class Seen(WordOverlap):
    """Keeps the traces that it is to score."""

    name: ClassVar[str] = "seen"
    traces: ClassVar[list[Trace]]

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        self.traces += traces
        return super().score(traces)


class Seeded(IdGenerator):
    """The ids of a program that runs again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def generate_trace_id(self) -> int:
        return self.random.getrandbits(128) | 1

    def generate_span_id(self) -> int:
        return self.random.getrandbits(64) | 1


class Server:
    """Answers as a test says: a fault of the receiver."""

    def __init__(self, *replies: tuple[int, dict[str, str]]) -> None:
        self.replies, self.came = list(replies), list[float]()
        self.requests: list[tuple[str, Any, bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.came.append(time.monotonic())
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests.append((self.path, self.headers, body))
                status, headers = server.replies.pop(0) if server.replies else (200, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()


@contextmanager
def silence() -> Iterator[str]:
    """A receiver that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    Seen.traces = []
    monkeypatch.setitem(registry._load_classes(), "seen", Seen)
    monkeypatch.setenv("TOUCHSTONE_RECEIVE_TOKEN", TOKEN)


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    url = f"sqlite:///{tmp_path_factory.mktemp('handed')}/touchstone.db"
    with running(url, "--wait", "0.5", token=TOKEN) as (_, address):
        store = open_store(url)
        yield store, f"http://127.0.0.1:{address.port}"
        store.close()


def of_model(store: Store, model: str) -> dict[str, Trace]:
    return {trace.id: trace for trace in stored(store) if trace.model == model}


def test_what_arrives_is_what_was_scored(receiver: tuple[Store, str]) -> None:
    store, url = receiver
    program = Program(file_of(seen=(0.5, "below", "page")), hand_over=url, share=1.0)
    logprobs = [
        {"token": "Joseph", "logprob": -0.1, "top_logprobs": [{"token": "Carl", "logprob": -2.5}]},
        {"token": " «P»\u2028", "logprob": -0.30000000000000004, "top_logprobs": []},
    ]
    schema = {"type": "object", "properties": {"name": {"enum": ["é", None, 1.5, True]}}}
    both = [{"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in (TRUE, "Nobody did.")]
    documents = [
        {"number": "7", "title": "Gas", "text": 'Priestley "found" it.\n', "retrieval_score": 0.123456789},
        {"number": "3", "text": "日本語 🙂 <b>"},
    ]
    many = {f"app.label{n}": n for n in range(60)}
    with program.tracer.start_as_current_span("answer", attributes={"session.id": "s1", "app.beta": True} | many):
        with program.tracer.start_as_current_span(
            "step", attributes={f"app.more{n}": f"m{n}" for n in range(40)}
        ) as span:
            span.set_attribute("touchstone.operation", "faq")
        with program.tracer.start_as_current_span("one") as span:
            span.set_attributes(chat(**{"gen_ai.output.messages": json.dumps(both), "app.ratio": 0.1}))
            span.set_attribute("gen_ai.response.model", "whole")
            span.set_attribute("gen_ai.response.logprobs", json.dumps(logprobs))
            span.set_attribute("gen_ai.request.structured_output_schema", json.dumps(schema))
            span.set_attribute("touchstone.sources", json.dumps(documents))
            span.set_attribute("touchstone.context", "It was 1774.")
            span.set_attribute("touchstone.score.theirs", 0.25)
        # Of the same trace, with less of its own: nothing of the other may be read into it again.
        with program.tracer.start_as_current_span("two") as span:
            span.set_attributes({"touchstone.answer": "[]", "touchstone.trace_id": "mine-1", "touchstone.schema": True})
            span.set_attribute("touchstone.model", "whole")
    assert program.provider.force_flush(20_000)
    wait_until(lambda: len(of_model(store, "whole")) == 2)
    assert program.processor.handed_over == HandOverCounts(sent=2)
    scored = {trace.id: replace(trace, attributes=as_imported(trace.attributes)) for trace in Seen.traces}
    assert of_model(store, "whole") == scored
    (one,) = [trace for trace in Seen.traces if trace.id != "mine-1"]
    arrived = of_model(store, "whole")[one.id]
    assert arrived.sources == (
        Source("7", 'Priestley "found" it.\n', "Gas", 0.123456789),
        Source("3", "日本語 🙂 <b>", None, None),
    )
    assert arrived.tokens == (
        Token("Joseph", -0.1, (("Carl", -2.5),)),
        Token(" «P»\u2028", -0.30000000000000004, ()),
    )
    assert (arrived.answer, arrived.alternatives, arrived.schema) == (TRUE, ("Nobody did.",), schema)
    assert (arrived.question, arrived.context) == ("Who discovered oxygen?", "It was 1774.")
    assert arrived.operation == "faq"
    assert len(arrived.attributes) == 103
    program.provider.shutdown()


def as_imported(attributes: Mapping[str, Any]) -> dict[str, str]:
    """The store keeps every attribute as a text, whichever way it comes."""
    return {name: str(value).lower() if value is True else str(value) for name, value in attributes.items()}


def test_scores_of_others_go_with_the_answer_and_the_token_with_the_request() -> None:
    server = Server()
    program = Program(hand_over=f"{server.url}/base/", share=1.0)
    with program.tracer.start_as_current_span("chat", attributes=chat() | {"touchstone.score.theirs": 0.25}) as span:
        why = {"gen_ai.evaluation.score.value": 1.0, "gen_ai.evaluation.explanation": "Ann said so."}
        span.add_event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "other"} | why)
    assert program.provider.force_flush(20_000)
    ((path, headers, body),) = server.requests
    assert (path, headers["Authorization"]) == ("/base/v1/traces", f"Bearer {TOKEN}")
    spans = [span for span in spans_of_json(json.loads(gzip.decompress(body))) if isinstance(span, SpanRecord)]
    (answer,) = answers_of(spans)
    assert {(each.name, each.value, each.explanation) for each in answer.evaluations} == {
        ("theirs", 0.25, None),
        ("other", 1.0, "Ann said so."),
    }
    server.http.shutdown()


def asked(url: str, share: float, model: str) -> tuple[HandOverCounts, Program]:
    """Two hundred traces of two answers each, with the ids of every other such program."""
    program = Program(hand_over=url, share=share)
    program.provider = TracerProvider(id_generator=Seeded(5), shutdown_on_exit=False)
    program.provider.add_span_processor(program.processor)
    tracer = program.provider.get_tracer("program")
    for number in range(200):
        with tracer.start_as_current_span("answer"):
            for text in (f"Answer {number}.", f"And {number}."):
                tracer.start_span("chat", attributes=chat(text, **{"gen_ai.response.model": model})).end()
    assert program.provider.force_flush(30_000)
    return program.processor.handed_over, program


def test_the_same_half_of_the_traces_is_sent_by_every_process(receiver: tuple[Store, str]) -> None:
    store, url = receiver
    counts, _ = asked(url, 0.5, "half")
    assert counts == HandOverCounts(sent=counts.sent, left_out=400 - counts.sent)
    assert 150 < counts.sent < 250
    wait_until(lambda: len(of_model(store, "half")) == counts.sent)
    half = set(of_model(store, "half"))
    by_trace = {name.partition("-")[0] for name in half}
    assert 2 * len(by_trace) == len(half)  # whole traces
    again, _ = asked(url, 0.5, "half")
    tenth, _ = asked(url, 0.1, "half")
    assert again == counts
    assert 10 <= tenth.sent < 90
    asked(url, 1.0, "rest")  # what is there already is not added again: the rest is
    wait_until(lambda: len(of_model(store, "rest")) == 400 - counts.sent)
    assert set(of_model(store, "half")) == half


def test_what_is_redacted_and_left_out_never_leaves_the_program(receiver: tuple[Store, str]) -> None:
    store, url = receiver
    for redact, model in (("email", "names"), (hook, "hook")):
        program = Program(hand_over=url, share=1.0, redact=redact)
        for text in ("Write to ann@example.com.", "Nothing here.", "Leave this out."):
            program.ask(text, "Ann is ann@example.com.", **{"gen_ai.response.model": model})
        assert program.provider.force_flush(20_000)
        sent = 3 if redact == "email" else 2
        assert program.processor.handed_over == HandOverCounts(sent=sent, left_out=3 - sent)
        wait_until(lambda model=model, sent=sent: len(of_model(store, model)) == sent)
    names, hooked = of_model(store, "names").values(), of_model(store, "hook").values()
    assert {trace.answer for trace in names} == {"Write to [e-mail 1].", "Nothing here.", "Leave this out."}
    assert {trace.sources[0].text for trace in names} == {"Ann is [e-mail 1]."}
    assert {trace.answer for trace in hooked} == {"WRITE TO ANN@EXAMPLE.COM.", "NOTHING HERE."}


def hook(record: dict[str, Any]) -> dict[str, Any] | None:
    return None if "Leave" in record["answer"] else record | {"answer": record["answer"].upper()}


def test_it_goes_on_when_the_receiver_comes_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Program(hand_over=f"http://127.0.0.1:{port}/", share=1.0)
    for number in range(3):
        program.ask(f"Answer {number}.")
    began = time.monotonic()
    assert program.provider.force_flush(20_000)  # a workbench that is away holds up nobody
    assert time.monotonic() - began < 10
    assert program.processor.handed_over == HandOverCounts(waiting=3)
    url = f"sqlite:///{tmp_path}/touchstone.db"
    with running(url, "--wait", "0.5", "--port", str(port), token=TOKEN):
        wait_until(lambda: program.processor.handed_over == HandOverCounts(sent=3))
        store = open_store(url)
        wait_until(lambda: len(stored(store)) == 3)
        store.close()
    program.provider.shutdown()


def test_a_receiver_that_is_busy_is_asked_again_and_one_that_refuses_is_not() -> None:
    server = Server((429, {"Retry-After": "2"}), (503, {}), (200, {}), (401, {}))
    program = Program(hand_over=server.url, share=1.0)
    program.ask()
    program.processor.force_flush()
    wait_until(lambda: program.processor.handed_over == HandOverCounts(sent=1))
    assert server.came[1] - server.came[0] >= 2
    assert len(server.came) == 3
    program.ask()
    assert program.processor.force_flush()
    assert program.processor.handed_over == HandOverCounts(sent=1, refused=1)
    server.http.shutdown()


def test_a_silent_receiver_holds_up_nobody_and_a_full_queue_is_counted() -> None:
    with silence() as url:
        program = Program(hand_over=url, share=1.0, max_queue=16, cpu_share=1.0, shutdown_seconds=0.5)
        for number in range(40):
            program.ask(f"Answer {number}.")
            assert program.processor._worker.flush(20)
        assert program.processor.counts().scored == 40
        assert program.processor.handed_over == HandOverCounts(dropped=24, waiting=16)
        began = time.monotonic()
        program.processor.shutdown()
        assert time.monotonic() - began < 3
        counts = program.processor.handed_over
        assert counts.dropped + counts.waiting == 40
        program.processor.shutdown()


FORK = """
import os, sys
from tests.runtime.otel_making import Program
program = Program(hand_over=sys.argv[1], share=1.0)
program.ask("Of the parent.", **{"gen_ai.response.model": "fork"})
assert program.provider.force_flush(20_000)
child = os.fork()
program.ask("Of the child." if not child else "After it.", **{"gen_ai.response.model": "fork"})
program.processor.shutdown()
print(program.processor.handed_over.sent, flush=True)
os._exit(0) if not child else os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_hands_over_its_own_answers(receiver: tuple[Store, str]) -> None:
    store, url = receiver
    done = subprocess.run(
        [sys.executable, "-c", FORK, url], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["1", "2"]), done.stderr
    wait_until(lambda: len(of_model(store, "fork")) == 3)
    answers = sorted(trace.answer for trace in of_model(store, "fork").values())
    assert answers == ["After it.", "Of the child.", "Of the parent."]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hand_over": "workbench:4318"}, "the address in hand_over is invalid"),
        ({"hand_over": "http://w", "share": 0}, "share cannot be 0"),
        ({"hand_over": "http://w", "redact": 3}, "redact cannot be 3"),
        ({"hand_over": "http://w", "redact": "nothing-known"}, "nothing-known"),
        ({"redact": "email"}, "give hand_over too"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        TouchstoneSpanProcessor(FILE, **settings)


def test_an_answer_that_fails_costs_no_other() -> None:
    def picky(record: dict[str, Any]) -> dict[str, Any]:
        return record | ({"answer": 1 / 0} if "bad" in record["answer"] else {})

    server = Server()
    program = Program(hand_over=server.url, share=1.0, redact=picky)
    for text in ("Good.", "A bad one.", "Better."):
        program.ask(text, retrieval("x")["gen_ai.operation.name"])
    assert program.provider.force_flush(20_000)
    assert program.processor.handed_over == HandOverCounts(sent=2, failed=1)
    server.http.shutdown()

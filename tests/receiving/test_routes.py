"""`POST /v1/traces` over real HTTP: what is kept, what is refused and how it is said, and clients that mean ill."""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
import time
import tracemalloc
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from calibrate.connections import PatientProtocol
from calibrate.errors import StoreError
from calibrate.receiving.routes import Receiver
from calibrate.types import Arrival
from db import Store, open_store
from tests.receiving.making import Address, Impatient, chat, listening, request, root, trace_id

Start = Callable[..., Address]
PROTOBUF = "application/x-protobuf"
GOOD = request(root(trace_id(1)), chat(trace_id(1)))


@pytest.fixture
def start(store: Store) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(spool: Any = None, *, protocol: Any = PatientProtocol, **options: Any) -> Address:
            receiver = Receiver(spool or store.received, **{"most_backlog": 10**9, **options})
            return stack.enter_context(listening(receiver, protocol))

        yield begin


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    opened = open_store(sqlite_url)
    yield opened
    opened.close()


def kept(store: Store) -> list[Arrival]:
    return [each.arrival for each in store.received.after(0, most_bytes=10**9)]


def protobuf(*ids: bytes) -> bytes:
    message = ExportTraceServiceRequest()
    spans = message.resource_spans.add().scope_spans.add().spans
    for each in ids:
        spans.add(trace_id=each, span_id=b"12345678")
    return message.SerializeToString()


def test_what_is_acknowledged_is_in_the_store_as_it_came(store: Store, start: Start) -> None:
    server = start()
    answer = server.post(GOOD)
    assert (answer.status, answer.document) == (200, {})
    packed = gzip.compress(GOOD)
    assert server.post(packed, Content_Encoding="gzip").status == 200
    binary = protobuf(b"1" * 16)
    answer = server.post(binary, PROTOBUF)
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, PROTOBUF, b"")
    twice = gzip.compress(binary[:20]) + gzip.compress(binary[20:])  # gzip may come in several members
    assert server.post(twice, PROTOBUF, Content_Encoding="GZIP").status == 200
    assert [(each.kind, each.body, each.spans, each.unpacked) for each in kept(store)] == [
        ("json", GOOD, 2, len(GOOD)),
        ("json+gzip", packed, 2, len(GOOD)),
        ("protobuf", binary, 1, len(binary)),
        ("protobuf+gzip", twice, 1, len(binary)),
    ]
    health = server.get("/healthz").document
    assert health["backlog"]["requests"] == 4
    assert health["received"]["spans"] == 6
    assert health["joining"] is False


def test_spans_that_cannot_be_used_are_a_partial_success(store: Store, start: Start) -> None:
    server = start()
    answer = server.post(request(chat(trace_id(1)), {**chat("0"), "traceId": "0"}, chat("zz")))
    partial = answer.document["partialSuccess"]
    assert (answer.status, partial["rejectedSpans"]) == (200, "2")
    assert "2 of the spans cannot be used: a trace id" in partial["errorMessage"]
    answer = server.post(protobuf(b"1" * 16, b"short"), PROTOBUF)
    response = ExportTraceServiceResponse.FromString(answer.body)
    assert (answer.status, response.partial_success.rejected_spans) == (200, 1)
    assert "trace id" in response.partial_success.error_message
    assert server.post(protobuf(b"short"), PROTOBUF).status == 200
    assert [each.spans for each in kept(store)] == [1, 1]  # nothing is kept of the last


def test_a_request_without_spans_is_accepted_in_both_encodings(store: Store, start: Start) -> None:
    server = start()
    assert (server.post(b"{}").status, server.post(b"", PROTOBUF).status) == (200, 200)
    assert server.post(b'{"spans": []}').status == 400
    assert kept(store) == []


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size)), packer.flush()])


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status", "sentence"),
    [
        (GOOD, "text/plain", {}, 415, "Content-Type 'text/plain'"),
        (GOOD, "application/json", {"Content_Encoding": "zstd"}, 415, "Content-Encoding 'zstd'"),
        (GOOD, "application/json", {"Content_Encoding": "gzip"}, 400, "no gzip"),
        (gzip.compress(GOOD)[:-9], "application/json", {"Content_Encoding": "gzip"}, 400, "breaks off"),
        (b"{", "application/json", {}, 400, "no JSON"),
        (b"[]", "application/json; charset=utf-8", {}, 400, "resourceSpans"),
        (b"\xff\xfe{}", "application/json", {}, 400, "no JSON"),
        (b"[" * 200_000, "application/json", {}, 400, "nested too deeply"),
        (b'{"resourceSpans":' + b"9" * 10_000 + b"}", "application/json", {}, 400, "no JSON"),
        (b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF, {}, 400, "damaged or cut off"),
        (os.urandom(5000), PROTOBUF, {}, 400, "OTLP"),
        (b"\x0a\x00" * 200_000, PROTOBUF, {}, 400, "100,000"),
        (bomb(70), PROTOBUF, {"Content_Encoding": "gzip"}, 413, "64 MiB when unpacked"),
        (bomb(20), "application/json", {"Content_Encoding": "gzip"}, 413, "16 MiB when unpacked"),
        (b" " * (17 << 20), "application/json", {}, 413, "more than 16 MiB"),
    ],
)
def test_a_refusal_has_a_sentence_in_the_clients_own_encoding(
    store: Store, start: Start, body: bytes, kind: str, headers: dict[str, str], status: int, sentence: str
) -> None:
    answer = start().post(body, kind, **headers)
    if kind.startswith("application/json"):
        text = answer.document["message"]
    else:
        assert answer.headers["content-type"] == PROTOBUF
        text = Status.FromString(answer.body).message
    assert answer.status == status
    assert sentence in text
    assert kept(store) == []


def test_who_may_send(store: Store, start: Start) -> None:
    server = start(token="secret")
    for header in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic secret"}):
        answer = server.post(GOOD, **header)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert kept(store) == []
    assert server.post(GOOD, Authorization="bearer secret").status == 200
    assert server.get("/healthz").status == 200
    for path in ("/v1/logs", "/thresholds/active.json"):
        assert "/v1/traces" in server.get(path).document["error"]
    assert server.get("/v1/traces").status == 405


def test_a_full_backlog_makes_clients_wait_and_then_takes_again(store: Store, start: Start) -> None:
    server = start(most_backlog=len(GOOD) + 1)
    assert [server.post(GOOD).status for _ in range(3)] == [200, 200, 429]
    answer = server.post(protobuf(b"1" * 16), PROTOBUF)
    assert (answer.status, answer.headers["retry-after"]) == (429, "5")
    assert "backlog is full" in Status.FromString(answer.body).message
    last = store.received.after(0, most_bytes=10**9)[-1].key
    now = datetime.now(UTC)
    assert store.received.hold("one", now=now, until=now + timedelta(minutes=1)) == 0
    store.received.settle("one", last)
    time.sleep(1.1)  # a count is believed for a second
    assert server.post(GOOD).status == 200
    assert server.get("/healthz").document["received"]["full"] == 2


def test_a_store_that_cannot_be_written_is_told_with_503(store: Store, start: Start) -> None:
    class Broken:
        def __init__(self) -> None:
            self.backlog = store.received.backlog

        def append(self, arrivals: Sequence[Arrival]) -> None:
            raise StoreError("the disk is full; make room")

    server = start(Broken())
    answer = server.post(GOOD)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert "make room" in answer.document["message"]


def test_requests_that_wait_share_a_commit(store: Store, start: Start) -> None:
    commits: list[int] = []
    first = threading.Event()

    class Slow:
        def __init__(self) -> None:
            self.backlog = store.received.backlog

        def append(self, arrivals: Sequence[Arrival]) -> None:
            first.wait(10)
            store.received.append(arrivals)
            commits.append(len(arrivals))

    server = start(Slow())
    statuses: list[int] = []
    clients = [threading.Thread(target=lambda: statuses.append(server.post(GOOD).status)) for _ in range(20)]
    for client in clients:
        client.start()
    time.sleep(1.0)
    assert statuses == []  # nothing is acknowledged before it is safe
    first.set()
    for client in clients:
        client.join()
    assert statuses == [200] * 20
    assert (len(commits) <= 10, sum(commits), len(kept(store))) == (True, 20, 20)


def raw(server: Address, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    connection.sendall(data)
    return connection


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_slow_and_half_closed_clients_are_told_and_others_are_served(store: Store, start: Start) -> None:
    server = start(protocol=Impatient)
    head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n"
    said_nothing = [raw(server, b"") for _ in range(5)]
    no_end_of_head = [raw(server, head) for _ in range(5)]
    no_end_of_body = [raw(server, head + b"\r\n" + b"{" * 100) for _ in range(5)]
    cut_body, cut_head = [raw(server, head + b"\r\n{") for _ in range(5)], [raw(server, head) for _ in range(5)]
    for connection in (*cut_body, *cut_head):
        connection.shutdown(socket.SHUT_WR)
    begun = time.monotonic()
    assert server.post(GOOD).status == 200
    for connections, status, sentence in (
        (no_end_of_head, b"408", b"the head of the request did not come to its end in time (1 s)"),
        (no_end_of_body, b"408", b"the body did not come to its end in time (4 s)"),
        (cut_body, b"400", b"the body breaks off before its end"),
        (cut_head, b"400", b"the request breaks off amid its head"),
    ):
        for connection in connections:
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 " + status), answer
            assert sentence in answer
            connection.close()
    for connection in said_nothing:
        with suppress(ConnectionResetError):
            assert connection.recv(1000) == b""
        connection.close()
    assert time.monotonic() - begun < 20
    dripping, begun = raw(server, head + b"\r\n"), time.monotonic()
    with suppress(OSError):
        while time.monotonic() - begun < 20:  # a byte now and then prolongs nothing
            dripping.sendall(b"{")
            time.sleep(0.05)
    assert time.monotonic() - begun < 20
    dripping.close()
    assert len(kept(store)) == 1
    assert server.post(GOOD).status == 200


def test_a_whole_request_of_a_client_that_sends_no_more_is_kept(store: Store, start: Start) -> None:
    server = start()
    head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    connection = raw(server, f"{head}Content-Length: {len(GOOD)}\r\n\r\n".encode() + GOOD)
    connection.shutdown(socket.SHUT_WR)
    answer = read_all(connection)  # to its end: the connection is closed then
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(kept(store)) == 1
    connection.close()


@pytest.mark.parametrize("expects", [False, True])
def test_a_body_too_large_to_be_read_is_refused_at_once(start: Start, *, expects: bool) -> None:
    length = b"17000000\r\nExpect: 100-continue" if expects else b"99999999999999999999"
    head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
    connection = raw(start(), head + length + b"\r\n\r\n")
    begun = time.monotonic()
    assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    assert time.monotonic() - begun < 3
    connection.close()


def test_a_client_that_sends_all_before_it_listens_hears_that_it_was_too_much(start: Start) -> None:
    address = f"http://127.0.0.1:{start().port}/v1/traces"
    asked = urllib.request.Request(address, b" " * 31_000_000, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(asked, timeout=30):
        pass
    with refused.value as answer:
        assert answer.code == 413
        assert "more than 16 MiB" in json.load(answer)["message"]


def test_memory_is_bounded_whatever_comes(store: Store, start: Start) -> None:
    server = start()
    packed = bomb(63)
    crowd = ExportTraceServiceRequest()
    crowded = crowd.resource_spans.add().scope_spans.add().spans.add(trace_id=b"1" * 16, span_id=b"12345678")
    for _ in range(100_000):
        crowded.attributes.add(key="a")
    attributes = crowd.SerializeToString()
    del crowd, crowded
    tracemalloc.start()
    try:
        for _ in range(3):
            assert server.post(packed, PROTOBUF, Content_Encoding="gzip").status == 400
            answer = ExportTraceServiceResponse.FromString(server.post(attributes, PROTOBUF).body)
            assert "a span has 100,000 attributes" in answer.partial_success.error_message
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200e6
    assert kept(store) == []

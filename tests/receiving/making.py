"""Traces of an app as OTLP, and a receiver to send them to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import uvicorn

from calibrate import serve
from calibrate.connections import PatientProtocol
from calibrate.receiving.routes import Receiver
from calibrate.types import Trace
from db import Store

START = 1_780_000_000_000_000_000


def message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def span(trace: str, name: str, parent: str | None = None, **attributes: Any) -> dict[str, Any]:
    """A span whose id is made of its name: those of three letters begin in alphabetical order."""
    number = int.from_bytes(name.encode(), "big")
    values = {key.replace("__", "."): value for key, value in attributes.items()}
    parents = {} if parent is None else {"parentSpanId": f"{int.from_bytes(parent.encode(), 'big'):016x}"}
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(START + number),
        "endTimeUnixNano": str(START + number + 1),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
        **parents,
    }


def root(trace: str) -> dict[str, Any]:
    return span(trace, "app", session__id="s1")


def retriever(trace: str, text: str = "Paris is in France.") -> dict[str, Any]:
    documents = json.dumps([{"id": "a", "content": text, "score": 0.5}])
    return span(trace, "get", "app", gen_ai__operation__name="retrieval", gen_ai__retrieval__documents=documents)


def chat(trace: str, answer: str = "In France.", name: str = "say") -> dict[str, Any]:
    return span(
        trace,
        name,
        "app",
        gen_ai__operation__name="chat",
        gen_ai__response__model="m",
        gen_ai__input__messages=message("user", "Where is Paris?"),
        gen_ai__output__messages=message("assistant", answer),
    )


def request(*spans: Mapping[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def trace_id(number: int) -> str:
    return f"{number + 1:032x}"


def stored(store: Store) -> list[Trace]:
    """Every trace in the store."""
    from calibrate.types import TraceFilter

    return store.traces.load([pk for chunk in store.traces.keys(TraceFilter()) for pk, _ in chunk])


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass
class Address:
    port: int

    def post(self, body: bytes, kind: str = "application/json", **headers: str) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("POST", "/v1/traces", body, {"Content-Type": kind, **named})
            return self._read(connection)
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return self._read(connection)
        finally:
            connection.close()

    @staticmethod
    def _read(connection: HTTPConnection) -> Reply:
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


class Impatient(PatientProtocol):
    head_seconds, answer_seconds, linger_seconds = 1.0, 4.0, 1.0


@contextmanager
def listening(receiver: Receiver, protocol: type[PatientProtocol] = PatientProtocol) -> Iterator[Address]:
    """The routes over real HTTP, in a thread of this process."""
    app = serve.application(None, receiver=receiver)
    server = uvicorn.Server(uvicorn.Config(app, http=protocol, log_level="critical", lifespan="off"))
    with serve.listen("127.0.0.1", 0) as at:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
        thread.start()
        try:
            yield Address(at.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
            receiver.close()

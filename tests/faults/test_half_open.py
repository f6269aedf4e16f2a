"""`serve` closes connections that never finish a request, and answers others meanwhile."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD_SECONDS = 2.0
SERVER = """
import sys
from calibrate import connections, serve
connections.PatientProtocol.head_seconds = float(sys.argv[1])
connections.PatientProtocol.answer_seconds = float(sys.argv[1])
connections.PatientProtocol.most = int(sys.argv[2])
content = b"x" * int(sys.argv[3])
at = serve.listen("127.0.0.1", 0)
print(at.getsockname()[1], flush=True)
serve.run(serve.application(lambda version: serve.Document(1, content, "0" * 64)), at)
"""
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def server(most: int = 2000, size: int = 2) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-c", SERVER, str(HEAD_SECONDS), str(most), str(size)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout is not None
        try:
            yield "127.0.0.1", int(process.stdout.readline())
        finally:
            process.kill()


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.001)
    try:
        while connection.recv(1000):  # why it is closed
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def ask(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(WHOLE)
        return connection.recv(12)


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_nine_hundred_that_never_finish_are_gone_in_time() -> None:
    with server() as address, ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(900)]
        for number, connection in enumerate(halves):
            if number % 3:  # the others say nothing at all
                connection.sendall(WHOLE[:-2])
        assert ask(address) == b"HTTP/1.1 200"
        wait_until(lambda: all(map(is_closed, halves)), HEAD_SECONDS + 10)
        assert ask(address) == b"HTTP/1.1 200"


def test_bytes_that_trickle_do_not_prolong_it() -> None:
    with server() as address, socket.create_connection(address, timeout=10) as connection:
        connection.sendall(WHOLE)  # a first request is answered: then too
        assert connection.recv(4000)
        began = time.monotonic()
        with suppress(OSError):  # reset, or a broken pipe
            while time.monotonic() < began + 20:
                connection.sendall(b"G")
                time.sleep(0.1)
        assert time.monotonic() - began < HEAD_SECONDS + 5


def test_a_client_that_does_not_read_is_not_waited_for() -> None:
    with server(size=50_000_000) as address, socket.create_connection(address, timeout=10) as connection:
        connection.sendall(b"GET /thresholds/active.json HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(HEAD_SECONDS + 2)
        received = 0
        connection.settimeout(5)
        with suppress(OSError):  # it was reset in the middle
            while piece := connection.recv(1 << 20):
                received += len(piece)
        assert received < 50_000_000


def test_there_are_never_more_than_the_limit_and_new_ones_are_served() -> None:
    with server(most=50) as address, ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(80)]
        assert ask(address) == b"HTTP/1.1 200"
        closed = [is_closed(connection) for connection in halves]
        assert sum(closed) >= 30
        assert closed[:20] == [True] * 20, "those that waited longest go first"


def test_a_connection_is_kept_for_further_requests() -> None:
    with server() as address, socket.create_connection(address, timeout=10) as connection:
        for _ in range(3):
            connection.sendall(WHOLE)
            answer = b""
            while not answer.endswith(b'{"status":"ok"}'):
                piece = connection.recv(4000)
                assert piece, "it was closed"
                answer += piece
            time.sleep(0.3)

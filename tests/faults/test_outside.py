"""The server asks nothing of the outside, lets no page frame it, and believes no request about itself."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibrate import settings
from calibrate.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]
# Run before anything else in the server's process: every address that a socket is connected to or a name that is
# resolved is a line of the file. No packet leaves to where it should not.
HOOK = """
import ipaddress, os, socket
_connect, _resolve = socket.socket.connect, socket.getaddrinfo
def note(what):
    with open(os.environ["WATCHED"], "a") as file:
        file.write(f"{what}\\n")
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        note(address[0])
        if not ipaddress.ip_address(address[0]).is_loopback and self.type & socket.SOCK_STREAM:
            raise OSError("this test lets nothing out")
    return _connect(self, address)
def resolve(host, *rest, **more):
    note(host)
    if host not in (None, "", "localhost", "127.0.0.1", "0.0.0.0", "::", "::1"):
        raise socket.gaierror("this test resolves nothing")
    return _resolve(host, *rest, **more)
socket.socket.connect, socket.getaddrinfo = connect, resolve
note("hooked")
"""
OWN = {"localhost", "127.0.0.1", "0.0.0.0", "::", "::1", "None", "hooked"}


def start(folder: Path, command: list[str], address: str, **variables: str) -> tuple[subprocess.Popen[bytes], int]:
    (folder / "sitecustomize.py").write_text(HOOK)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--server.headless", "true", "--server.address", address, "--server.port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(folder), "WATCHED": str(folder / "watched"), **variables}
    environment |= {"TOUCHSTONE_STORE": f"sqlite:///{folder / 'store.db'}", "HF_HUB_OFFLINE": "1"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, *command, *options], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
            return server, port
        except OSError:
            time.sleep(0.1)
    server.kill()
    pytest.fail((folder / "log").read_text()[-2000:])


def handshake(port: int, **headers: str) -> str:
    """The first line of the answer to an attempt to open the web socket."""
    lines = {
        "Host": f"127.0.0.1:{port}", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit", **headers,
    }  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        client.sendall(f"GET /_stcore/stream HTTP/1.1\r\n{head}\r\n".encode())
        return client.recv(200).split(b"\r\n")[0].decode()


def get(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


@pytest.fixture(params=["pages.shell.serve", "streamlit run"])
def open_to_all(request: Any, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    command = ["-m", request.param] if request.param.startswith("pages") else ["-m", "streamlit", "run", "app.py"]
    server, port = start(tmp_path, command, "0.0.0.0")
    yield port, tmp_path
    server.terminate()
    server.wait(timeout=20)


def test_nothing_is_asked_of_the_outside(open_to_all: tuple[int, Path]) -> None:
    port, folder = open_to_all
    assert "403" in handshake(port, Origin="https://evil.example")  # Streamlit would look up its own address
    assert "403" in handshake(port, Origin="http://localhost:9999")  # a page on the visitor's machine, none of ours
    assert "101" in handshake(port, Origin=f"http://127.0.0.1:{port}")
    watched = set((folder / "watched").read_text().split())
    assert "hooked" in watched
    assert watched - OWN == set()


def test_no_page_frames_it_and_no_foreign_page_steers_it(open_to_all: tuple[int, Path]) -> None:
    port, _ = open_to_all
    for path in ("/", "/release", "/_stcore/health", "/no/such/thing", "/static/nothing.js"):
        headers = get(port, path)[1]
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert json.loads(get(port, "/_stcore/host-config")[2])["allowedOrigins"] == []


def test_on_this_machine_only_another_host_is_not_taken_for_it(tmp_path: Path) -> None:
    """A name of somebody else's that was made to point to 127.0.0.1 (DNS rebinding) is a stranger."""
    server, port = start(tmp_path, ["-m", "pages.shell.serve"], "127.0.0.1")
    try:
        assert get(port, "/", Host=f"localhost:{port}")[0] == 200
        assert get(port, "/", Host=f"evil.example:{port}")[0] == 403
        assert "403" in handshake(port, Host="evil.example", Origin="http://evil.example")
        assert "101" in handshake(port, Origin=f"http://localhost:{port}", Host=f"localhost:{port}")
    finally:
        server.terminate()
        server.wait(timeout=20)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TOUCHSTONE_USER_HEADER": "X-User"}, "needs TOUCHSTONE_TRUSTED_PROXIES"),
        ({"TOUCHSTONE_TRUSTED_PROXIES": "10.0.0.0/8 nonsense"}, "cannot hold 'nonsense'"),
        ({"TOUCHSTONE_USER_HEADER": "X User", "TOUCHSTONE_TRUSTED_PROXIES": "10.0.0.1"}, "cannot be 'x user'"),
    ],
)
def test_settings_that_would_let_anybody_in_are_refused(variables: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        settings.identity(variables)


def test_a_proxy_is_an_address_or_a_network() -> None:
    given = settings.identity({"TOUCHSTONE_USER_HEADER": "X-User", "TOUCHSTONE_TRUSTED_PROXIES": "10.1.0.0/16, ::1"})
    assert [given.trusts(peer) for peer in ("10.1.2.3", "::ffff:10.1.2.3", "::1", "10.2.0.1", "proxied", "")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip

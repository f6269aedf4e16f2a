"""A server that is down, goes back in time, or sends its readers to an unsafe place."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from calibrate.errors import BadInput, BadThresholds
from calibrate.runtime import Guard, decide, load, sources
from calibrate.thresholds import encode
from calibrate.thresholds.signing import sign
from tests.faults.test_signatures import OURS, TRUSTED
from tests.runtime.serving import serving
from tests.thresholds.make import entry, release

V2 = release({"d": entry(0.5, "above")})
V3 = release({"d": entry(0.9, "above")}, version=3, replaces=2)
NEVER = 3600.0


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged at WARNING."""
    caplog.set_level(logging.WARNING, "touchstone")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "touchstone"]


@pytest.fixture
def down() -> str:
    """A URL where nobody listens any more."""
    with serving(lambda _: (200, {}, b"")) as server:
        return f"{server.url}/t.json"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "last-good.json"


@pytest.fixture(params=["header", "chunk line", "interim answers", "redirects", "handshake"])
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server that always says a little more, and is never done."""
    first = {
        "header": b"HTTP/1.1 200 OK\r\nX-A: ",
        "chunk line": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        "handshake": b"\x16\x03\x03\x3f\xff",  # a TLS record of 16 kB is announced
    }.get(request.param, b"")
    piece = {
        "interim answers": b"HTTP/1.1 100 Continue\r\n\r\n",
        "redirects": b"HTTP/1.1 302 Found\r\nLocation: /t.json%d\r\nContent-Length: 0\r\n\r\n",
    }.get(request.param, b"a")
    stop, turn = threading.Event(), count()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(first)
            while not stop.wait(0.1):
                connection.sendall(piece % next(turn) if b"%d" in piece else piece)
                if request.param == "redirects":
                    return

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        scheme = "https" if request.param == "handshake" else "http"
        yield f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/t.json"
        stop.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_a_server_that_drips_holds_nobody(dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TIMEOUT", 0.4)
    threads, began = threading.active_count(), time.monotonic()
    with pytest.raises(BadThresholds, match=r"not complete after 0\.4 seconds"):
        load(dripping)
    assert time.monotonic() - began < 3
    assert threading.active_count() <= threads + 2  # those of the server


def test_a_process_starts_from_the_last_good_file_while_the_server_is_down(
    down: str, cache: Path, log: Callable[[], list[str]]
) -> None:
    with serving(lambda _: (200, {}, encode(V2))) as server:
        assert load(f"{server.url}/t.json", cache=cache).version == 2
    assert cache.read_bytes() == encode(V2)
    assert cache.stat().st_mode & 0o777 == 0o600
    assert os.listdir(cache.parent) == [cache.name]
    os.utime(cache, (time.time() - 3 * 86400,) * 2)
    assert log() == []
    assert load(down, cache=cache) == V2
    (line,) = log()
    assert "Connection refused. Version 2 is used instead: the last good file" in line
    assert "was right 3 days ago" in line
    with pytest.raises(BadThresholds, match="Connection refused"):
        load(down, cache=cache.with_name("none.json"))
    with pytest.raises(BadThresholds, match="Connection refused"):
        load(down)


def test_a_live_starts_from_it_too_and_follows_when_the_server_is_back(
    cache: Path, log: Callable[[], list[str]]
) -> None:
    cache.write_bytes(encode(V2))
    holds: list[bytes | None] = [None]
    with serving(lambda _: (503, {}, b"") if holds[0] is None else (200, {}, holds[0])) as server:
        url = f"{server.url}/t.json"
        with load(url, cache=cache, reload_every=NEVER) as live:
            assert "answers 503" in str(live.problem)
            assert decide(live, {"d": 0.7}).version == 2
            assert Guard(live) is not None
            live.refresh()
            assert len(log()) == 2  # that the last good file is used, and that the server is still down
            holds[0] = encode(V2)
            live.refresh()
            assert live.problem is None
            holds[0] = encode(V3)
            live.refresh()
            assert live.current.version == 3
    assert cache.read_bytes() == encode(V3)


@pytest.mark.parametrize("damage", ["changed", "cut", "empty", "unsigned"])
def test_a_damaged_copy_is_not_used(down: str, cache: Path, damage: str, log: Callable[[], list[str]]) -> None:
    content = encode(V2)
    cache.write_bytes(
        {"changed": content.replace(b"0.5", b"0.4"), "cut": content[:-20], "empty": b"", "unsigned": content}[damage]
    )
    keys: Any = {"verify_key": TRUSTED} if damage == "unsigned" else {}
    with pytest.raises(BadThresholds, match="Connection refused"):
        load(down, cache=cache, **keys)
    assert "This last good file is not used" in log()[0]
    with serving(lambda _: (200, {}, encode(sign(V2, OURS)))) as server:
        assert load(f"{server.url}/t.json", cache=cache, **keys).version == 2
    assert load(down, cache=cache, **keys).version == 2  # it was replaced by a good one


def test_a_cache_that_cannot_be_is_said(down: str, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    places = {
        tmp_path / "diary.txt": "it exists and is no thresholds file",
        tmp_path: "it exists and is no thresholds file",
        tmp_path / "no" / "t.json": "there is no folder",
        "": "cache is empty",
        5: "cache is an int",
    }
    for place, sentence in places.items():
        with pytest.raises(BadInput, match=sentence):
            load(down, cache=place)  # type: ignore[arg-type]
    assert (tmp_path / "diary.txt").read_text() == "dear diary"


def test_a_full_disk_stops_nobody(cache: Path, monkeypatch: pytest.MonkeyPatch, log: Callable[[], list[str]]) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    cache.write_bytes(encode(V2))
    with serving(lambda _: (200, {}, encode(V3))) as server:
        monkeypatch.setattr(os, "fsync", full)
        assert load(f"{server.url}/t.json", cache=cache).version == 3
    (line,) = log()
    assert "No space left on device" in line
    assert "cannot start while its source is down" in line
    assert cache.read_bytes() == encode(V2)
    assert os.listdir(cache.parent) == [cache.name]


# ------------------------------------------------------------------------------------------------- back in time


def test_an_older_release_is_refused_by_a_process_that_has_seen_a_newer_one(
    tmp_path: Path, log: Callable[[], list[str]]
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(encode(V3))
    with load(path, reload_every=NEVER) as live:
        path.write_bytes(encode(V2))
        for _ in range(3):
            live.refresh()
        assert live.current.version == 3
        (line,) = log()
        assert "version 2 is older than 3, which was used before" in line
        assert "Version 3 stays in use" in line
        path.write_bytes(encode(V3))
        live.refresh()
        assert live.problem is None
    with load(path, reload_every=NEVER, allow_older=True) as live:
        path.write_bytes(encode(V2))
        live.refresh()
        assert live.current.version == 2
        assert log()[-1].endswith("version 2 is taken, and is older than 3")


@pytest.mark.parametrize("reload_every", [None, NEVER])
def test_an_older_release_is_refused_across_a_restart(
    cache: Path, log: Callable[[], list[str]], reload_every: float | None
) -> None:
    cache.write_bytes(encode(V3))
    more: Any = {"reload_every": reload_every}
    with serving(lambda _: (200, {}, encode(V2))) as server:
        thresholds = load(f"{server.url}/t.json", cache=cache, **more)
        assert decide(thresholds, {}).version == 3
        assert "version 2 is older than 3" in log()[0]
        assert cache.read_bytes() == encode(V3)
        thresholds = load(f"{server.url}/t.json", cache=cache, allow_older=True, **more)
        assert decide(thresholds, {}).version == 2
    assert cache.read_bytes() == encode(V2)


def test_another_file_of_the_same_number_is_said(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(encode(V2))
    with load(path, reload_every=NEVER) as live:
        path.write_bytes(encode(release({"d": entry(0.1, "above")})))
        live.refresh()
        assert live.current.detectors["d"].threshold == 0.1
    assert "another version 2 is taken in place of the last" in log()[0]


# ------------------------------------------------------------------------------------------------- redirects


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Starts an https server that this process trusts and that redirects to a URL; gives its own."""
    key, now = Ed25519PrivateKey.generate(), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
        .add_extension(alternative, critical=False).sign(key, None)
    )  # fmt: skip
    path = tmp_path / "server.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))

    def start(target: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"https://127.0.0.1:{server.server_port}/t.json"

    return start


def test_no_redirect_leads_from_https_to_http(secure: Callable[[str], str]) -> None:
    with serving(lambda _: (200, {}, encode(V2))) as server:
        with pytest.raises(BadThresholds, match="it redirects from https to http://127"):
            load(secure(f"{server.url}/t.json?key=sekret"))
        assert server.asked == []
        with pytest.raises(BadThresholds, match="it redirects from https to http://127"):
            load(secure(secure(f"{server.url}/t.json")))  # https to https is followed, and no further
        assert server.asked == []

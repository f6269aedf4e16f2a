"""A release made while a program runs takes effect; a bad one does not, and is said once."""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibrate.errors import BadInput, BadThresholds, TouchstoneError
from calibrate.runtime import Live, decide, load, probability, sources
from calibrate.thresholds import encode, write
from calibrate.thresholds.files import deliver
from tests.runtime.serving import Answer, Asked, serving
from tests.thresholds.make import entry, release

V2 = encode(release({"d": entry(0.5, "above")}))
V3 = encode(release({"d": entry(0.9, "above")}, version=3, replaces=2))
NEVER = 3600.0


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "touchstone")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "touchstone"]


def until(true: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def test_without_reload_it_is_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(V2)
    assert load(path).version == load(f"file://{path}").version == 2


def test_a_new_release_is_taken_by_the_thread_and_garbage_is_not(tmp_path: Path, said: Callable[[], list[str]]) -> None:
    path = tmp_path / "t.json"
    write(release({"d": entry(0.5, "above")}), path)
    with load(path, reload_every=0.02) as live:
        assert decide(live, {"d": 0.7}).flags == ("d",)
        deliver(V3, str(path))
        assert until(lambda: live.current.version == 3)
        assert decide(live, {"d": 0.7}).flags == ()
        for garbage in (b"{", b"", os.urandom(500), V2.replace(b"0.5", b"0.4"), V2[:200]):
            path.write_bytes(garbage)
            assert until(lambda: live.problem is not None)
            path.write_bytes(V3)
            assert until(lambda: live.problem is None)
        path.unlink()
        assert until(lambda: live.problem is not None)
        assert "no such file" in str(live.problem)
        assert decide(live, {"d": 0.7}).version == 3
    assert said()[0].endswith("version 3 is taken in place of 2")


def test_each_problem_is_said_once_and_so_is_its_end(tmp_path: Path, said: Callable[[], list[str]]) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(V2)
    with load(path, reload_every=NEVER) as live:
        for content in (b"{", V2.replace(b"0.5", b"0.4"), None, V2):
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            for _ in range(3):
                live.refresh()
        assert live.problem is None
    lines = [line.removeprefix(str(path)) for line in said()]
    assert len(lines) == 4
    for line, part in zip(lines, ("not JSON", "changed after release", "no such file", "good again"), strict=True):
        assert part in line
        assert "ersion 2" in line  # which one is in use


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "5", True])
def test_the_first_load_raises(tmp_path: Path, bad: float) -> None:
    with pytest.raises(BadThresholds, match="no such file"):
        load(tmp_path / "none.json", reload_every=5)
    (tmp_path / "t.json").write_bytes(V2)
    with pytest.raises(BadInput, match="reload_every"):
        load(tmp_path / "t.json", reload_every=bad)
    with pytest.raises(BadInput, match="a token is for an http"):
        load(tmp_path / "t.json", token="t")


@pytest.mark.parametrize(
    ("place", "said"),
    [(None, "cannot be None"), (5, "cannot be an int"), ("", "is empty"), (["a"], "cannot be a list")],
)
@pytest.mark.parametrize("reload_every", [None, 5])
def test_a_place_that_cannot_be(place: Any, said: str, reload_every: float | None) -> None:
    with pytest.raises(BadInput, match=f"{said}; give its path or its URL"):
        load(place, reload_every=reload_every)  # type: ignore[call-overload]
    with pytest.raises(BadInput, match="the token is an int; give a text"):
        load("http://127.0.0.1/t.json", token=5)  # type: ignore[call-overload]


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(V2)
    source = sources.source_of(path)
    assert source.fetch() == source.fetch() == V2  # just written: the clock may not tell a second write
    os.utime(path, (1e9, 1e9))
    assert source.fetch() == V2
    assert source.fetch() is None
    path.unlink()
    with pytest.raises(BadThresholds):
        source.fetch()
    path.write_bytes(V2)
    os.utime(path, (1e9, 1e9))
    assert source.fetch() == V2  # after an error the whole again


def etag(asked: Asked, content: bytes) -> Answer:
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    same = asked.headers.get("If-None-Match") == tag
    return (304, {"ETag": tag}, b"") if same else (200, {"ETag": tag}, content)


def test_http_asks_only_for_what_is_new_and_sends_the_token(said: Callable[[], list[str]]) -> None:
    holds = [V2]
    with (
        serving(lambda asked: etag(asked, holds[0])) as server,
        load(f"{server.url}/active.json?key=hidden", reload_every=NEVER, token="t0ken") as live,
    ):
        live.refresh()
        live.refresh()
        assert [("If-None-Match" in one.headers) for one in server.asked] == [False, True, True]
        assert {one.headers["Authorization"] for one in server.asked} == {"Bearer t0ken"}
        holds[0] = V3
        live.refresh()
        assert live.current.version == 3
        server.answer = lambda _: (503, {}, b"")
        live.refresh()
        assert "answers 503" in str(live.problem)
        server.answer = lambda asked: etag(asked, V3)
        live.refresh()  # whole, although the server would have said "unchanged"
        assert live.problem is None
    assert len(said()) == 3
    assert not any("hidden" in line or "t0ken" in line for line in said())


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, {}, b""), "the server wants a token"),
        ((404, {}, b""), "no such file"),
        ((200, {}, b"<html>"), "not JSON"),
        ((304, {}, b""), "answers 304"),
        ((200, {"Content-Length": "5000"}, V2[:100]), "not JSON"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "302"),
    ],
)
def test_what_a_server_may_answer(answer: Answer, sentence: str) -> None:
    with serving(lambda _: answer) as server, pytest.raises(BadThresholds, match=sentence):
        load(f"{server.url}/t.json")


def test_servers_that_never_end_hang_or_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    with serving(lambda _: (200, {}, b" " * (16 * 2**20 + 2))) as server:
        with pytest.raises(BadThresholds, match="larger than 16 MB"):
            load(f"{server.url}/t.json")
        monkeypatch.setattr(sources, "TIMEOUT", 0.2)
        server.answer = lambda _: (200, {}, str(go_on.wait(5)).encode())
        with pytest.raises(BadThresholds, match=r"timed out|not complete"):
            load(f"{server.url}/t.json")
        go_on.set()
    with pytest.raises(BadThresholds, match="cannot be read: Connection refused"):
        load(f"{server.url}/t.json")


def test_a_token_follows_no_redirect_to_another_server() -> None:
    with (
        serving(lambda asked: etag(asked, V2)) as other,
        serving(lambda _: (302, {"Location": f"{other.url}/t.json"}, b"")) as server,
    ):
        assert load(f"{server.url}/t.json", token="t0ken").version == 2
        assert "Authorization" in server.asked[0].headers
        assert "Authorization" not in other.asked[0].headers


@pytest.mark.parametrize(
    ("url", "token", "sentence"),
    [
        ("http://mara:secret@127.0.0.1/t.json", None, "a password in a URL"),
        ("http://127.0.0.1/t.json", "a\nb", "the token cannot be sent"),
        ("unheardof://a/b", None, "unheardof"),
        ("s3://bucket/t.json", None, "s3fs"),
    ],
)
def test_urls_that_cannot_be(url: str, token: str | None, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        load(url, token=token)
    assert "secret" not in str(caught.value)


def test_fsspec_reads_and_writes_where_there_is_no_disk(tmp_path: Path) -> None:
    url = "memory://releases/active.json"
    deliver(V2, url)
    with load(url, reload_every=NEVER) as live:
        deliver(V3, url)
        live.refresh()
        assert live.current.version == 3
        deliver(b"{", url)
        live.refresh()
        assert (live.current.version, "not JSON" in str(live.problem)) == (3, True)
    deliver(V2, f"file://{tmp_path}/a%20b.json")
    assert (tmp_path / "a b.json").read_bytes() == V2
    assert [path.name for path in tmp_path.iterdir()] == ["a b.json"]  # nothing temporary is left
    with pytest.raises(BadThresholds, match="no such file"):
        load("memory://releases/none.json")
    with pytest.raises(BadInput, match="read, not written"):
        deliver(V2, "https://example.org/t.json")
    with pytest.raises(TouchstoneError, match="could not be written"):
        deliver(V2, f"file://{tmp_path}/none/t.json")


def test_a_write_that_breaks_off_leaves_the_old_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFile

    url = "memory://releases/kept.json"
    deliver(V2, url)

    def broken(self: object, content: bytes) -> int:
        raise OSError("the line is cut")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryFile, "write", broken)
        with pytest.raises(TouchstoneError, match="the line is cut"):
            deliver(V3, url)
    assert load(url).version == 2


def test_current_waits_for_nothing_while_the_server_hangs() -> None:
    hold = threading.Event()
    with serving(lambda asked: etag(asked, V2)) as server:
        with load(f"{server.url}/t.json", reload_every=0.01) as live:
            server.answer = lambda _: (200, {}, str(hold.wait(20)).encode())
            n = len(server.asked)
            assert until(lambda: len(server.asked) > n)  # the thread is in there now
            assert decide(live, {"d": 0.7}).version == 2
            live.refresh()  # and nobody queues behind it
            assert not hold.is_set()
        hold.set()


def test_a_forked_child_goes_on_looking(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(V2)
    with load(path, reload_every=0.02) as live:
        live._looking.acquire()  # as when the thread is looking at the moment of the fork
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            first = live.current.version
            deliver(V3, str(path))
            until(lambda: live.current.version == 3)
            os.write(writing, json.dumps([first, live.current.version]).encode())
            os._exit(0)
        live._looking.release()
        os.waitpid(child, 0)
        assert json.loads(os.read(reading, 100)) == [2, 3]
        assert until(lambda: live.current.version == 3)


def test_nobody_looks_for_a_live_that_is_closed_or_gone(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(V2)

    before = set(threading.enumerate())

    def looking() -> int:
        return sum(thread.name == "touchstone-thresholds" for thread in threading.enumerate() if thread not in before)

    with load(path, reload_every=0.02) as live:
        assert looking() == 1
    assert until(lambda: looking() == 0)
    assert live.current.version == 2
    gone = load(path, reload_every=0.02)
    del gone
    gc.collect()
    assert until(lambda: looking() == 0)


def test_probability_takes_either(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(V2)
    with load(path, reload_every=NEVER) as live:
        assert isinstance(live, Live)
        assert probability(live, "d", 0.7) is probability(load(path), "d", 0.7) is None

"""After a release: a commit in a real repository, a message to a real server, and faults of both that undo nothing."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing.release import unannounced
from calibrate.settings import ReleaseSettings
from calibrate.thresholds import files
from calibrate.workflow.releasing import announce
from db.releases import Release
from tests.thresholds.make import entry, release

WHEN = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECRET = "T000/B000/sekret"


def row(version: int = 1, *, by: str = "Mara M", note: str = "Labels of week 46.") -> Release:
    document = files.render(release({"rouge_l": entry(version / 10)}))
    return Release(version, document, "ab" * 32, by, WHEN, note)


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def test_every_release_is_a_commit_of_whoever_released_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "other.txt").write_text("half done")
    git(repository, "add", "other.txt")
    kept = ReleaseSettings(git=str(repository))
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # the caller's repository is not ours
    for version in (1, 2):
        assert announce.announce(row(version, by="Mara <M>\nEvil", note="#1 -m x"), kept) == []
    monkeypatch.delenv("GIT_DIR")
    said = git(repository, "log", "--format=%s|%an|%ae|%cn|%aI|%b")
    assert said.count("Mara M Evil|Mara.M.Evil@touchstone.invalid|Mara M Evil|2026-11-20T12:00:00+00:00|#1 -m x") == 2
    assert said.startswith("Thresholds v2, released by Mara M Evil|")
    assert git(repository, "show", "HEAD:thresholds.json") + "\n" == row(2).document
    assert git(repository, "show", "--name-only", "--format=", "HEAD") == "thresholds.json"
    assert git(repository, "status", "--porcelain") == "A  other.txt"  # what others prepared waits as it did


def test_a_file_in_a_repository_may_be_named(repository: Path) -> None:
    (repository / "live").mkdir()
    place = repository / "live" / "qa.json"
    assert announce.announce(row(), ReleaseSettings(git=str(place))) == []
    assert git(repository, "show", "HEAD:live/qa.json") + "\n" == row().document


def test_what_git_refuses_is_said(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho the hook says no >&2\nexit 1\n")
    hook.chmod(0o755)
    faults = {
        str(repository): "git commit failed in .*: the hook says no",
        str(tmp_path): "git rev-parse failed in .*not a git repository",
        str(tmp_path / "no" / "where.json"): "there is no folder",
    }
    for place, match in faults.items():
        (failure,) = announce.announce(row(), ReleaseSettings(git=place))
        said = unannounced(failure)
        assert said.startswith("v1 is released, but not committed: ")
        with pytest.raises(AssertionError, match=match):
            raise AssertionError(said)


@dataclass
class Server:
    url: str
    status: int = 200
    hang: threading.Event | None = None
    got: list[tuple[str, dict[str, object]]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known.got.append((self.path, json.loads(body)))
            if known.hang:
                self.wfile.write(b"HTTP/1.1 200 ")  # and no more: the connection lives, the answer does not
                known.hang.wait(20)
                return
            self.send_response(known.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    known = Server(f"http://127.0.0.1:{http.server_port}/{SECRET}")
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield known
    if known.hang:
        known.hang.set()
    http.shutdown()
    http.server_close()


def test_the_webhook_is_told_once(server: Server) -> None:
    assert announce.announce(row(note="<!channel> & more"), ReleaseSettings(webhook=server.url)) == []
    ((path, said),) = server.got
    assert path == f"/{SECRET}"
    assert said == {
        "text": "Touchstone: thresholds v1 released by Mara M: &lt;!channel&gt; &amp; more",
        "version": 1,
        "sha256": "ab" * 32,
    }


@pytest.mark.parametrize("status", [500, 404, 302])
def test_a_webhook_that_fails_is_said_without_its_secret(server: Server, status: int) -> None:
    server.status = status
    (failure,) = announce.announce(row(), ReleaseSettings(webhook=server.url))
    said = unannounced(failure)
    assert said == f"v1 is released, but the webhook at 127.0.0.1 was not told: it answered {status}"
    assert len(server.got) == 1  # not sent on to where it was redirected


def test_a_webhook_that_hangs_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announce, "PATIENCE", 0.3)
    server.hang = threading.Event()
    begun = time.monotonic()
    (failure,) = announce.announce(row(), ReleaseSettings(webhook=server.url))
    said = unannounced(failure)
    assert said.endswith("did not answer in time") or "TimeoutError" in said
    assert SECRET not in said
    assert time.monotonic() - begun < 5  # the server holds on for 20 s


def test_a_webhook_that_trickles_does_not_keep_the_process_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    never, before = threading.Event(), set(threading.enumerate())
    monkeypatch.setattr(announce, "PATIENCE", 0.1)
    monkeypatch.setattr(announce.webhook, "post", lambda *_, **__: never.wait(20))
    (failure,) = announce.announce(row(), ReleaseSettings(webhook="http://127.0.0.1:1/"))
    left = set(threading.enumerate()) - before
    never.set()
    assert failure.reason is None
    assert left, "the message must still be under way, or nothing is tested"
    assert all(thread.daemon for thread in left)


def test_a_webhook_that_is_not_there_is_said(server: Server) -> None:
    (failure,) = announce.announce(row(), ReleaseSettings(webhook=f"http://127.0.0.1:1/{SECRET}"))
    said = unannounced(failure)
    assert "it could not be reached (Connection refused)" in said
    assert SECRET not in said


def test_settings_are_read_and_bad_ones_refused_without_showing_a_secret() -> None:
    found = settings.releases(
        {
            "TOUCHSTONE_APPROVAL": "1",
            "TOUCHSTONE_RELEASE_GIT": "/r",
            "TOUCHSTONE_RELEASE_WEBHOOK": f"https://h/{SECRET}",
        }
    )
    assert (found.approval, found.git, found.webhook) == (True, "/r", f"https://h/{SECRET}")
    assert SECRET not in repr(found)
    assert settings.releases({}) == ReleaseSettings()
    with pytest.raises(BadInput, match="TOUCHSTONE_APPROVAL cannot be 'ture'"):
        settings.releases({"TOUCHSTONE_APPROVAL": "ture"})
    for url in (f"hooks/{SECRET}", f"https://ann:{SECRET}@hooks.example/x", f"https://h/{SECRET} x"):
        with pytest.raises(BadInput, match="TOUCHSTONE_RELEASE_WEBHOOK is invalid") as refused:
            settings.releases({"TOUCHSTONE_RELEASE_WEBHOOK": url})
        assert SECRET not in str(refused.value)

"""Releases at once, and releases cut short: the newest one is what stays, in its place and in git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from calibrate.cli import main
from calibrate.runtime import load
from calibrate.settings import ReleaseSettings
from calibrate.thresholds import write
from calibrate.workflow.releasing import announce
from calibrate.workflow.releasing import release as step
from db import Store, open_store
from db.releases import Release, ReleaseRequest
from tests.thresholds.make import release
from tests.workflow.making import DETECTOR, NOW, draw, fill, save

ROOT = Path(__file__).resolve().parents[2]
TIERS = ("page", "off", "signal")


@pytest.fixture
def ready(store: Store) -> Store:
    """A store with one saved point, of which version 1 is released."""
    fill(store, *draw())
    save(store, "precision>=0.7")
    make(store, 0)
    return store


def make(store: Store, place: int, out: Any = None) -> Release:
    """The next release: each has another tier than the last."""
    return step.release(store, ReleaseRequest(tiers={DETECTOR: TIERS[place % 3]}, by="ann"), now=NOW, out=out)


def url_of(store: Store) -> str:
    return store.engine.url.render_as_string(hide_password=False)


def two_at_once(store: Store, out: Any, stalled: threading.Event, go_on: threading.Event) -> None:
    """Version 2 stalls on the way to its place; meanwhile version 3 is released, and then version 2 goes on."""
    problems: list[BaseException] = []

    def press(place: int, begin: threading.Event, done: threading.Event) -> None:
        mine = open_store(url_of(store))
        try:
            assert begin.wait(20)
            make(mine, place, out)
        except BaseException as error:
            problems.append(error)
        finally:
            mine.close()
            done.set()

    now, first, second = threading.Event(), threading.Event(), go_on
    now.set()
    threads = [
        threading.Thread(target=press, args=(1, now, first), name="first"),
        threading.Thread(target=press, args=(2, stalled, second), name="second"),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert problems == []
    assert [row.version for row in store.releases.list()] == [3, 2, 1]


@pytest.mark.both_databases
def test_a_release_that_stalls_before_its_rename_leaves_the_newer_one(
    ready: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled, go_on, real = threading.Event(), threading.Event(), os.replace

    def replace(*paths: Any) -> None:
        if threading.current_thread().name == "first" and not stalled.is_set():
            stalled.set()
            go_on.wait(1.5)  # the other one is done, or waits for us
        real(*paths)

    monkeypatch.setattr(os, "replace", replace)
    out = tmp_path / "thresholds.json"
    two_at_once(ready, out, stalled, go_on)
    assert load(out).version == 3


@pytest.mark.parametrize("place", ["thresholds.json", "memory://at-once/active.json"])
def test_a_release_that_was_overtaken_puts_the_newer_one_there(
    ready: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Even where the newer one was released to no file, or to another."""
    stalled, go_on, out = threading.Event(), threading.Event(), place if "://" in place else str(tmp_path / place)
    real: Callable[..., None] = step._put

    def put(*given: Any) -> None:
        if threading.current_thread().name == "first":
            stalled.set()
            assert go_on.wait(20)
            real(*given)

    monkeypatch.setattr(step, "_put", put)
    two_at_once(ready, out, stalled, go_on)
    assert load(out).version == 3


KILLED = """
import os, signal, sys
from calibrate.thresholds import files
from tests.faults.test_releases import make
from db import open_store
def replace(*_):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace
make(open_store(sys.argv[1]), 1, sys.argv[2])
"""


@pytest.mark.both_databases
def test_a_lock_goes_with_the_process_that_held_it(ready: Store, tmp_path: Path) -> None:
    out = tmp_path / "thresholds.json"
    done = subprocess.run([sys.executable, "-c", KILLED, url_of(ready), str(out)], cwd=ROOT, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [row.version for row in ready.releases.list()] == [2, 1]
    assert not out.exists()
    assert make(ready, 2, out).version == load(out).version == 3


def test_nobody_releases_while_a_file_is_put_in_its_place(ready: Store) -> None:
    order = []

    def press() -> None:
        mine = open_store(url_of(ready))
        make(mine, 1)
        order.append("released")
        mine.close()

    thread = threading.Thread(target=press)
    with ready.releases.holding() as newest:
        assert newest is not None
        assert newest.version == 1
        thread.start()
        thread.join(0.7)
        order.append("let go")
    thread.join(20)
    assert order == ["let go", "released"]


# ------------------------------------------------------------------------------------------------- git


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def versions(folder: Path) -> list[int]:
    """Of every commit, oldest first, the version that its file holds."""
    commits = git(folder, "log", "--reverse", "--format=%H").split()
    return [json.loads(git(folder, "show", f"{commit}:thresholds.json"))["version"] for commit in commits]


def test_git_catches_up_with_every_version_that_it_lacks(ready: Store, repository: Path) -> None:
    settings = ReleaseSettings(git=str(repository))
    for place in (1, 2):
        row = make(ready, place)  # killed before anybody told git
    assert announce.announce(row, settings, ready) == []
    assert versions(repository) == [1, 2, 3]
    assert announce.announce(row, settings, ready) == []  # again: nothing is lacking
    assert versions(repository) == [1, 2, 3]
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / "thresholds.json").read_text() == row.document


def test_a_lock_that_a_killed_git_left_is_named_and_then_made_up_for(ready: Store, repository: Path) -> None:
    settings = ReleaseSettings(git=str(repository))
    lock = repository / ".git" / "index.lock"
    assert announce.announce(ready.releases.list()[0], settings, ready) == []
    lock.touch()
    for place in (1, 2):
        (failure,) = announce.announce(make(ready, place), settings, ready)
        assert f"the lock {lock.resolve()}, made 2" in str(failure.reason)
        assert "remove the file" in str(failure.reason)
    assert versions(repository) == [1]
    lock.unlink()
    assert announce.announce(make(ready, 3), settings, ready) == []
    assert versions(repository) == [1, 2, 3, 4]


def test_again_commits_what_git_lacks(
    ready: Store, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(ready, 1)
    monkeypatch.setenv("TOUCHSTONE_RELEASE_GIT", str(repository))
    assert main(["release", "--again", "1", "--store", url_of(ready)]) == 0
    assert versions(repository) == [1, 2]
    assert "version 1 is as it was" in capsys.readouterr().out


@pytest.mark.parametrize("history", ["edited", "squashed", "shallow", "of another store"])
def test_whatever_became_of_the_history_no_version_is_committed_twice(
    ready: Store, repository: Path, tmp_path: Path, history: str
) -> None:
    settings = ReleaseSettings(git=str(repository))
    who = ("-c", "user.name=mara", "-c", "user.email=mara@example.org")
    file = repository / "thresholds.json"
    if history == "of another store":
        write(release(version=7), file)
        git(repository, "add", "thresholds.json")
        git(repository, *who, "commit", "-qm", "Thresholds v7, released by somebody else")
    make(ready, 1)
    assert announce.announce(ready.releases.list()[0], settings, ready) == []
    if history == "edited":
        file.write_text(file.read_text().replace('"version": 2', '"version": 5'))
        git(repository, *who, "commit", "-qam", "what is this number?")
    elif history == "squashed":
        git(repository, "checkout", "-q", "--orphan", "fresh")
        git(repository, *who, "commit", "-qm", "all in one")
    elif history == "shallow":
        (repository / "other.txt").write_text("x")
        git(repository, "add", "other.txt")
        git(repository, *who, "commit", "-qm", "other")
        git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
        repository = tmp_path / "shallow"
        settings = ReleaseSettings(git=str(repository))
    before = len(versions(repository)) if history != "of another store" else 3
    assert announce.announce(make(ready, 2), settings, ready) == []
    assert len(versions(repository)) == before + 1
    assert versions(repository)[-1] == 3


def test_two_exports_at_once_commit_each_version_once(ready: Store, repository: Path) -> None:
    settings = ReleaseSettings(git=str(repository))
    rows = [make(ready, place) for place in (1, 2)]
    failures: list[Any] = []
    threads = [
        threading.Thread(target=lambda row=row: failures.extend(announce.announce(row, settings, ready)))
        for row in rows
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert versions(repository) == [1, 2, 3]


# ------------------------------------------------------------------------------------------------- in an incident


def test_approving_and_rolling_back_ask_for_no_file(
    ready: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: str, user: str = "") -> tuple[int, str]:
        monkeypatch.delenv("TOUCHSTONE_USER", raising=False)  # then it is the login name, which is verified
        if user:
            monkeypatch.setenv("TOUCHSTONE_USER", user)
        code = main(["release", *arguments, "--store", url_of(ready)])
        said = capsys.readouterr()
        return code, said.out + said.err

    monkeypatch.setenv("TOUCHSTONE_APPROVAL", "1")
    code, said = call("--tier", f"{DETECTOR}=off", user="ann")
    assert (code, "`release --approve 1` releases it" in said) == (0, True)
    code, said = call("--approve", "1")
    assert (code, said.splitlines()[0][:21]) == (0, "version 2 is released")
    assert "`release --again 2 --out FILE` writes a file" in said
    code, said = call("--rollback", "1")
    assert (code, "version 3 is released" in said) == (0, True)
    assert [row.version for row in ready.releases.list()] == [3, 2, 1]


def test_an_old_version_written_again_says_who_will_not_take_it(
    ready: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(ready, 1)
    out = str(tmp_path / "t.json")
    assert main(["release", "--again", "1", "--out", out, "--store", url_of(ready)]) == 0
    assert "a runtime that has seen v2 refuses v1: `release --rollback 1`" in capsys.readouterr().out
    assert load(out).version == 1


def test_a_point_of_settings_that_never_made_a_score_is_not_released(
    ready: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, out = ("--store", url_of(ready)), tmp_path / "t.json"
    by_hand = ["choose", "judge_verdict", "--policy", "manual:0.5", "--param", "longest=1000", "--save"]
    assert main([*by_hand, "--reason", "a pilot", *store]) == 0
    assert main(["release", "--out", str(out), "--reason", "a pilot", *store]) == 2
    said = capsys.readouterr().err
    assert "judge_verdict: its point manual:0.5 is for settings that made no score here" in said
    assert "`detect judge_verdict --labelled --param longest=1000`" in said
    assert not out.exists()


@pytest.fixture(autouse=True)
def no_files_in_memory() -> None:
    fsspec.filesystem("memory").store.clear()

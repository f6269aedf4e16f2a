"""Nothing is written over the store, nor over a file that Touchstone did not write."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.targets import Kind, check_inside, check_target
from calibrate.thresholds import write
from calibrate.thresholds.files import check_place
from db import open_store
from db.upkeep.staging import new_file
from tests.thresholds.make import release
from tests.workflow.making import draw, fill, save

ANYTHING = Kind("anything", lambda content: True)
RELEASE = ("release", "--out", "{}")
WRITERS = (
    RELEASE,
    ("release", "--again", "1", "--out", "{}"),
    ("release", "--rollback", "1", "--out", "{}"),
    ("weekly", "--size", "5", "--out", "{}"),
    ("scoreboard", "--force", "--csv", "{}"),
    ("labels", "export", "--force", "{}"),
    ("scores", "export", "--force", "{}"),
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with labels, a saved point and two releases."""
    path = tmp_path_factory.mktemp("filled") / "self.csv"  # an ending that every writer takes
    store = open_store(f"sqlite:///{path}")
    fill(store, *draw(120))
    save(store, "manual:0.55")
    assert main(["release", "--out", str(path.with_name("1.json")), "--store", store.url]) == 0
    save(store, "manual:0.6")
    out = ["--out", str(path.with_name("2.json")), "--reason", "a drill"]
    assert main(["release", *out, "--store", store.url]) == 0
    save(store, "manual:0.57")
    store.close()
    return path


def call(store: Path, command: tuple[str, ...], target: str) -> int:
    words = [word.format(target) for word in command]
    if words[0] == "release" and "--again" not in words:
        words += ["--reason", "a drill"]
    return main([*words, "--store", f"sqlite:///{store}"])


def copy(store: Path, to: Path) -> None:
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def spellings(store: Path) -> list[str]:
    """The store's path, written in other ways."""
    folder = store.parent
    (folder / "link.csv").symlink_to(store)
    os.link(store, folder / "hard.csv")
    return [
        str(store), f"{folder}/../{folder.name}/{store.name}", os.path.relpath(store), str(folder / "link.csv"),
        str(folder / "hard.csv"), f"{store}-wal", f"{store}-shm", f"{store}-journal",
    ]  # fmt: skip


@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
def test_no_command_writes_over_the_store(
    filled: Path, tmp_path: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "self.csv"
    copy(filled, store)
    for target in spellings(store):
        assert call(store, command, target) == 2, target
        why = capsys.readouterr().err
        assert "it is the store, or belongs to it; name another file" in why or "its ending must be" in why
        with sqlite3.connect(store) as database:
            assert database.execute("SELECT count(*), max(version) FROM releases").fetchone() == (2, 2)
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("command", WRITERS, ids=" ".join)
@pytest.mark.parametrize("content", [b"precious\n", b"{}", b"SQLite format 3\0 and so on", b"\x89PNG\r\n"])
def test_no_command_writes_over_a_file_of_another_kind(
    filled: Path, tmp_path: Path, command: tuple[str, ...], content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "mine.csv"
    target.write_bytes(content)
    assert call(filled, command, str(target)) == 2
    assert "it exists and is not a" in capsys.readouterr().err
    assert target.read_bytes() == content
    with sqlite3.connect(filled) as database:
        assert database.execute("SELECT max(version) FROM releases").fetchone() == (2,)


@pytest.mark.parametrize("command", [WRITERS[1], *WRITERS[4:]], ids=" ".join)
def test_a_file_of_the_same_kind_and_an_empty_file_are_replaced(
    filled: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    target = tmp_path / "mine.csv"
    target.touch()
    assert call(filled, command, str(target)) == 0
    first = target.read_bytes()
    target.write_bytes(first[: len(first) * 2 // 3] if command[0] != "release" else first)
    assert call(filled, command, str(target)) == 0
    assert target.read_bytes() == first != b""


@pytest.mark.parametrize("scheme", ["file://", "local://", "simplecache::file://"])
def test_a_url_that_means_a_path_is_refused_like_the_path(filled: Path, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    for target in (filled, tmp_path / "mine.txt"):
        with pytest.raises(BadInput, match=r"it is the store|it exists and is not"):
            check_place(f"{scheme}{target}", store=filled)


def test_the_repository_of_releases_is_no_way_around(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "self.csv"
    copy(filled, store)
    os.system(f"git init -q {tmp_path}")
    monkeypatch.setenv("TOUCHSTONE_RELEASE_GIT", str(store))
    assert call(store, RELEASE, str(tmp_path / "t.json")) in (0, 1)
    assert "it exists and is not a thresholds file" in capsys.readouterr().out
    with sqlite3.connect(store) as database:
        assert database.execute("SELECT max(version) FROM releases").fetchone() == (3,)


def test_a_database_of_another_program_does_not_become_a_store(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE places (url TEXT)")
    database.close()
    before = path.read_bytes()
    for verb in (["demo"], ["import", __file__]):
        assert main([*verb, "--store", f"sqlite:///{path}"]) == 2
    with pytest.raises(BadInput, match="holds tables of another program"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == before


def _climb(folder: Path) -> str:
    return f"../{folder.name}-beside/x.json"


def _link(folder: Path) -> str:
    (folder / "way").symlink_to(folder.parent)
    return "way/x.json"


def _linked_file(folder: Path) -> str:
    (folder.parent / "x.json").touch()
    (folder / "x.json").symlink_to(folder.parent / "x.json")
    return "x.json"


@pytest.mark.parametrize(
    "escape", [_climb, _link, _linked_file, lambda folder: "/etc/passwd", lambda folder: f"{folder}-beside/x.json"]
)
def test_a_path_typed_on_a_page_stays_in_the_folder(tmp_path: Path, escape: Callable[[Path], str]) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (tmp_path / "files-beside").mkdir()
    with pytest.raises(BadInput, match=r"is outside of .*files'; pages read and write files only there"):
        check_inside(escape(folder), folder)
    assert check_inside("a/../b.json", folder) == folder / "b.json"
    assert check_inside(str(folder / "b.json"), folder) == folder / "b.json"
    with pytest.raises(BadInput, match="is no path"):
        check_inside("a\0b", folder)


def test_an_error_of_the_file_system_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("x" * 300, "a\0b", str(tmp_path / "loop")):
        with pytest.raises(BadInput, match=r"cannot write .*name another file"):
            check_target(name, ANYTHING, store=None)


def test_released_bytes_are_what_the_check_takes_for_a_thresholds_file(filled: Path) -> None:
    for name in ("1.json", "2.json"):
        assert "touchstone_thresholds" in json.loads(filled.with_name(name).read_text())
        check_place(str(filled.with_name(name)), store=filled)


def test_what_a_killed_process_left_is_removed_when_the_next_file_is_written(tmp_path: Path) -> None:
    old = time.time() - 2 * 3600
    left = [f".touchstone-{'0' * 15}{n}.tmp{ending}" for n, ending in enumerate(("", "-journal", "-wal"))]
    others = [f".touchstone-{'a' * 16}.tmp", "touchstone.db", ".touchstone-notes.tmp"]  # the first is being written
    for name in left + others:
        (tmp_path / name).write_text("x")
        if name != others[0]:
            os.utime(tmp_path / name, (old, old))
    write(release(), tmp_path / "thresholds.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "thresholds.json"])
    for name in left:
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (old, old))
    with new_file(tmp_path / "backup.db"):
        pass
    assert not any((tmp_path / name).exists() for name in left)

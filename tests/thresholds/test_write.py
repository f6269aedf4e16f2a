"""Writing replaces the file in one step, whatever happens meanwhile."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calibrate.errors import BadThresholds, TouchstoneError
from calibrate.thresholds import encode, read, stage, write
from calibrate.thresholds.files import filesystem
from tests.thresholds.make import release

OLD, NEW = release(note="old"), release(version=3, replaces=2, note="new " * 1000)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "thresholds.json"
    write(OLD, path)
    return path


def untouched(path: Path) -> bool:
    return path.read_bytes() == encode(OLD) and os.listdir(path.parent) == [path.name]


def test_write_then_read(place: Path) -> None:
    assert read(place) == OLD
    write(NEW, place)
    assert read(str(place)) == NEW
    assert os.listdir(place.parent) == [place.name]


def test_staged_waits_for_commit(place: Path) -> None:
    with stage(NEW, place) as pending:
        assert read(place) == OLD
        assert read(pending.temporary) == NEW
        assert Path(pending.temporary).parent == place.parent
        pending.commit()
        assert pending.committed
        assert read(place) == NEW
    assert pending.sha256 == hashlib.sha256(place.read_bytes()).hexdigest()
    assert os.listdir(place.parent) == [place.name]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, None])
def test_staged_without_commit_leaves_nothing(place: Path, error: type[BaseException] | None) -> None:
    try:
        with stage(NEW, place):
            if error:
                raise error
    except (RuntimeError, KeyboardInterrupt):
        pass
    assert untouched(place)


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_any_system_call_may_fail(place: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(TouchstoneError, match=os.strerror(code)):
            write(NEW, place)
    assert untouched(place)


def test_a_file_that_no_reader_would_take_never_reaches_the_disk(place: Path) -> None:
    with pytest.raises(BadThresholds):
        write(release(version=0, replaces=None), place)
    assert untouched(place)


def test_a_file_larger_than_readers_take_is_not_written(place: Path) -> None:
    with pytest.raises(BadThresholds, match=r"readers take at most 16,777,216"):
        write(release(extra={"x-log": "a" * 2**24}), place)
    assert untouched(place)


def in_child(action: Callable[[], None]) -> str:
    """What the action raised in a forked process, which may give up rights and space for good."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()
            message = b"nothing was raised"
        except TouchstoneError as error:
            message = str(error).encode()
        except BaseException as error:
            message = repr(error).encode()
        os.write(writing, message)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as stream:
        return stream.read()


def test_a_file_size_limit(place: Path) -> None:
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        write(NEW, place)

    assert "File too large. An older file there is unchanged" in in_child(fill)
    assert untouched(place)


@pytest.fixture
def tiny_disk() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp())
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mounted.returncode:
        path.rmdir()
        pytest.skip("may not mount a small disk here; the file size limit is tested")
    yield path
    subprocess.run(["umount", str(path)], check=True)
    path.rmdir()


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")
def test_a_full_disk(tiny_disk: Path) -> None:
    path = tiny_disk / "thresholds.json"
    write(OLD, path)
    with pytest.raises(TouchstoneError, match="No space left on device"):
        write(NEW, path)
    assert untouched(path)


def test_a_directory_without_rights() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "thresholds.json")
        write(OLD, path)
        os.chmod(name, 0o555)
        encode(NEW)  # so that the child has imported all it needs

        def act() -> None:
            if os.getuid() == 0:
                os.setuid(65534)  # root may write everywhere
            write(NEW, path)

        assert "Permission denied" in in_child(act)
        os.chmod(name, 0o755)
        assert untouched(path)


def test_places_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="it is a directory; name a file in it"):
        write(OLD, tmp_path)
    with pytest.raises(TouchstoneError, match="No such file or directory"):
        write(OLD, tmp_path / "no" / "t.json")
    with pytest.raises(TouchstoneError, match="could not be written"):
        write(OLD, "a\0b")
    assert os.listdir(tmp_path) == []


def test_mode_and_link_survive(place: Path, tmp_path: Path) -> None:
    place.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(place)
    write(NEW, link)
    assert link.is_symlink()
    assert read(place) == NEW
    assert place.stat().st_mode & 0o777 == 0o640


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(OLD, tmp_path / "t.json")
    finally:
        os.umask(old)
    assert (tmp_path / "t.json").stat().st_mode & 0o777 == 0o640


KILLED = """
import os, signal, sys
from calibrate.thresholds import stage
from tests.thresholds.test_write import NEW
with stage(NEW, sys.argv[1]) as pending:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_between_write_and_rename(place: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED, str(place)], cwd=root, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert read(place) == OLD
    (left,) = [name for name in os.listdir(place.parent) if name != place.name]
    assert left.startswith(".touchstone-")
    assert left.endswith(".tmp")
    write(NEW, place)  # what is left behind is in nobody's way
    assert read(place) == NEW


def test_a_write_by_fsspec_has_a_file_system_of_its_own() -> None:
    """A transaction belongs to an instance: two writers that share one would commit each other's files."""
    shared, again, alone = (filesystem("memory://t.json", alone=alone)[0] for alone in (False, False, True))
    assert shared is again
    assert alone is not shared

"""Commit every release to a git repository of the team. A failure here undoes no release."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from calibrate.errors import TouchstoneError
from calibrate.targets import check_target
from calibrate.thresholds import files
from db.releases import Release

FILE = "thresholds.json"
PATIENCE = 30.0  # seconds for each call of git, as a hook may take a while, and to wait for another export
SUBJECT = "Thresholds v"  # and the version
LOCKED = re.compile(r"'([^']+\.lock)': File exists")


def export(releases: Sequence[Release], place: str) -> str:
    """Commit every one of `releases` that `place`, a repository or a file in one, lacks. Returns the newest commit.

    Lacking are those after the newest one there: where an export failed or was killed, the next one makes up for it.
    Each is a commit of the file alone, in order, whose author and committer are the person who released it. Raises
    TouchstoneError with git's message.
    """
    path = Path(place).expanduser()
    file = path / FILE if path.is_dir() else path
    if not file.parent.is_dir():
        raise TouchstoneError(f"there is no folder {str(file.parent)!r}; TOUCHSTONE_RELEASE_GIT names a repository")
    by_version = {row.version: row for row in releases}
    with _alone(Path(_run_git(file.parent, "rev-parse", "--absolute-git-dir"))):
        newest = _find_newest(file, by_version)
        for version in sorted(version for version in by_version if version > newest):
            _commit(file, by_version[version])
        return _run_git(file.parent, "rev-parse", "HEAD")


def _commit(file: Path, row: Release) -> None:
    check_target(file, files.THRESHOLDS, store=None)
    files.deliver(row.document.encode(), str(file))
    _run_git(file.parent, "add", "--", file.name, row=row)
    message = f"{SUBJECT}{row.version}, released by {_clean_name(row.released_by)}\n\n{row.note}\n"
    arguments = ("commit", "--quiet", "--cleanup=whitespace", "--file=-", "--", file.name)
    _run_git(file.parent, *arguments, given=message, row=row)


def _find_newest(file: Path, by_version: Mapping[int, Release]) -> int:
    """The newest of these versions that the repository has; 0 for none.

    It is what the newest commit holds, or what a commit says by subject and date: the file may have been edited since,
    and history may be cut off or squashed.
    """
    if not _answers(file.parent, "rev-parse", "--verify", "--quiet", "HEAD"):  # nothing was ever committed
        return 0
    versions = [0]
    try:
        document = json.loads(_answers(file.parent, "cat-file", "--filters", f"HEAD:./{file.name}"))
        row = by_version.get(document["version"])
        if row is not None and json.loads(row.document)["digest"] == document["digest"]:
            versions.append(row.version)
    except (ValueError, KeyError, TypeError):
        pass  # no release of ours
    subject = re.compile(SUBJECT + "([0-9]{1,9}),")
    for line in _answers(file.parent, "log", "--format=%at %s", "--", file.name).splitlines():
        when, _, text = line.partition(" ")
        match = subject.match(text)
        row = by_version.get(int(match[1])) if match else None
        if row is not None and int(row.released_at.timestamp()) == int(when):
            versions.append(row.version)
    return max(versions)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other export writes to this repository. The system frees the lock of a process that dies."""
    try:
        lock = (folder / "touchstone.lock").open("w")
    except OSError as error:
        raise TouchstoneError(f"{folder} cannot be written to: {error.strerror}") from None
    with lock:
        until = time.monotonic() + PATIENCE
        while not _take(lock):
            if time.monotonic() > until:
                raise TouchstoneError(f"another process has been committing to {folder} for {PATIENCE:.0f} s")
            time.sleep(0.05)
        yield


def _take(lock: IO[str]) -> bool:
    if sys.platform == "win32":
        return True  # no such locks there: git's own keep commits apart
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _answers(folder: Path, *arguments: str) -> str:
    """What git answers to a question; nothing where it has no answer."""
    try:
        return _run_git(folder, *arguments)
    except TouchstoneError:
        return ""


def _run_git(folder: Path, *arguments: str, given: str = "", row: Release | None = None) -> str:
    """Run git in a folder, in the name of whoever released `row`."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=given,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
            env=_make_environment(row),
        )
    except FileNotFoundError:
        raise TouchstoneError("the program git is not here; install it, or unset TOUCHSTONE_RELEASE_GIT") from None
    except subprocess.TimeoutExpired:
        raise TouchstoneError(f"git {arguments[0]} took more than {PATIENCE:.0f} s in {folder}") from None
    if done.returncode:
        if row is not None and (held := LOCKED.search(done.stderr)):
            raise _locked(held[1], row)
        why = (done.stderr.strip() or done.stdout.strip() or f"it ended with {done.returncode}").splitlines()[0]
        raise TouchstoneError(f"git {arguments[0]} failed in {folder}: {why}")
    return done.stdout.strip()


def _locked(lock: str, row: Release) -> TouchstoneError:
    """The error for git's lock, which git itself never takes away when it is killed."""
    try:
        age = datetime.fromtimestamp(os.stat(lock).st_mtime, UTC).strftime("made %Y-%m-%dT%H:%MZ")
    except OSError:
        age = "just gone"
    return TouchstoneError(
        f"the lock {lock}, {age}, is in the way. If git is at work there, wait; if none is, it was killed: "
        f"remove the file. `release --again {row.version}` then commits what is lacking, and so does the next release"
    )


def _make_environment(row: Release | None) -> dict[str, str]:
    """Make git's environment: it asks nobody for a password and ignores the caller's own repository."""
    others = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    usual = {**others, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    if row is None:
        return usual
    name = _clean_name(row.released_by)
    address = name if re.fullmatch(r"\S+@\S+", name) else f"{re.sub(r'[^A-Za-z0-9.-]+', '.', name)}@touchstone.invalid"
    when = row.released_at.isoformat()
    who = {f"GIT_{role}_{what}": value
           for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", name), ("EMAIL", address), ("DATE", when))}  # fmt: skip
    return {**usual, **who}


def _clean_name(released_by: str) -> str:
    """Write a name so that git accepts it: on one line, without angle brackets."""
    return " ".join(re.sub(r"[<>\x00-\x1f]", " ", released_by).split()) or "somebody"

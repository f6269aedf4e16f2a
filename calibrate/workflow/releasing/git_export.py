"""Commit every release to a git repository of the team. A failure here undoes no release."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from calibrate.errors import TouchstoneError
from calibrate.targets import check_target
from calibrate.thresholds import files
from db.releases import Release

FILE = "thresholds.json"
PATIENCE = 30.0  # seconds for each call of git; a hook may take a while


def export(row: Release, place: str) -> str:
    """Write the release to `place`, a repository or a file in one, and commit only that file. Returns the commit.

    Author and committer are the person who released it. Raises TouchstoneError with git's message.
    """
    path = Path(place).expanduser()
    file = path / FILE if path.is_dir() else path
    if not file.parent.is_dir():
        raise TouchstoneError(f"there is no folder {str(file.parent)!r}; TOUCHSTONE_RELEASE_GIT names a repository")
    _run_git(file.parent, row, "rev-parse", "--show-toplevel")
    check_target(file, files.THRESHOLDS, store=None)
    files.deliver(row.document.encode(), str(file))
    _run_git(file.parent, row, "add", "--", file.name)
    message = f"Thresholds v{row.version}, released by {_clean_name(row.released_by)}\n\n{row.note}\n"
    _run_git(file.parent, row, "commit", "--quiet", "--cleanup=whitespace", "--file=-", "--", file.name, given=message)
    return _run_git(file.parent, row, "rev-parse", "HEAD")


def _run_git(folder: Path, row: Release, *arguments: str, given: str = "") -> str:
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
        why = (done.stderr.strip() or done.stdout.strip() or f"it ended with {done.returncode}").splitlines()[0]
        raise TouchstoneError(f"git {arguments[0]} failed in {folder}: {why}")
    return done.stdout.strip()


def _make_environment(row: Release) -> dict[str, str]:
    """Make git's environment: it asks nobody for a password and ignores the caller's own repository."""
    name = _clean_name(row.released_by)
    address = name if re.fullmatch(r"\S+@\S+", name) else f"{re.sub(r'[^A-Za-z0-9.-]+', '.', name)}@touchstone.invalid"
    when = row.released_at.isoformat()
    who = {f"GIT_{role}_{what}": value
           for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", name), ("EMAIL", address), ("DATE", when))}  # fmt: skip
    others = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**others, **who, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def _clean_name(released_by: str) -> str:
    """Write a name so that git accepts it: on one line, without angle brackets."""
    return " ".join(re.sub(r"[<>\x00-\x1f]", " ", released_by).split()) or "somebody"

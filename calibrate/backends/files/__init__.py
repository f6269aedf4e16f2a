"""Texts that a team may edit: prompts, lists of refusals, prices. This folder holds the packaged versions.

A name is the path below this folder: "prompts/judge_verdict.txt".
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from calibrate import workspace
from calibrate.errors import BadInput

FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """List the names of all files, sorted."""
    paths = (path.relative_to(FOLDER) for path in FOLDER.rglob("*.*") if path.suffix in (".txt", ".csv"))
    return tuple(sorted(path.as_posix() for path in paths))


@cache
def packaged(name: str) -> str:
    """Read the packaged version. Raises BadInput if there is no such file."""
    if name not in names():
        raise BadInput(f"there is no file {name!r}; there are: {', '.join(names())}")
    return (FOLDER / name).read_text(encoding="utf-8")


def read(name: str) -> str:
    """Read the team's version of the file, or the packaged one."""
    return workspace.current().files.get(name, packaged(name))


def version(name: str) -> str:
    """The start of the text's digest: part of the cache key of whatever reads it."""
    return hashlib.sha256(read(name).encode()).hexdigest()[:8]

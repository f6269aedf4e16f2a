"""Locate a model's files and compute their digests, without loading anything."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=64)
def _sha256(path: str, size: int, modified_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file, recomputed only if the file has changed."""
    status = path.stat()
    return _sha256(str(path), status.st_size, status.st_mtime_ns)


def directory(model: str, revision: str = "main") -> Path | None:
    """The directory of a model: the path itself, or a hub model's in the local cache. None if it is missing."""
    path = Path(model).expanduser()
    return path if path.is_dir() else _hub_snapshot(model, revision)


def _hub_snapshot(model: str, revision: str) -> Path | None:
    """Find a hub model in the local cache without importing the hub client."""
    home = os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    folder = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub") / f"models--{model.replace('/', '--')}"
    reference = folder / "refs" / revision  # which a commit has not: it names its snapshot
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def threads() -> int:
    """Number of threads to compute with: TOUCHSTONE_THREADS, else the processors that this process may use."""
    setting = os.environ.get("TOUCHSTONE_THREADS", "")
    if setting.isascii() and setting.isdigit() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

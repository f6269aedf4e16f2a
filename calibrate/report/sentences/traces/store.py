"""What is said of the store itself."""

from __future__ import annotations

from pathlib import Path


def exposed(file: Path, mode: int) -> str:
    """Say that every user of the machine can read a store's file. `mode` is its permissions."""
    return f"every user of this machine can read the store {file} (mode {mode:03o}): `chmod 600 {file}*` ends it"

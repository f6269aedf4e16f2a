"""The folder of this machine in which backends keep what they computed, between runs."""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path:
    """TOUCHSTONE_CACHE, else touchstone in the user's cache folder."""
    if name := os.environ.get("TOUCHSTONE_CACHE"):
        return Path(name)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "touchstone"

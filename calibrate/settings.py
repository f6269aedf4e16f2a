"""Settings from the environment, read once by the app and the CLI."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_STORE = "sqlite:///touchstone.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """`store` is an SQLAlchemy URL; `user` names who labels, chooses and releases."""

    store: str
    user: str


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """TOUCHSTONE_STORE and TOUCHSTONE_USER, each with a default that works."""
    return Settings(
        store=environment.get("TOUCHSTONE_STORE") or DEFAULT_STORE,
        user=environment.get("TOUCHSTONE_USER") or _login(),
    )


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no login name in a bare container
        return "somebody"

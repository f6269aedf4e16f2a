"""A damaged store is one sentence, whatever the damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.errors import StoreError
from db import open_store


def test_a_schema_that_is_no_text_is_damage(tmp_path: Path) -> None:
    """Python's driver cannot even say what SQLite complains of."""
    path = tmp_path / "touchstone.db"
    open_store(f"sqlite:///{path}").close()
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"sqlite_autoindex_")] = 0xD8
    path.write_bytes(whole)
    with pytest.raises(StoreError, match="is damaged"):
        open_store(f"sqlite:///{path}")

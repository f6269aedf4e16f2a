from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingesting import DictSink


@pytest.fixture
def sink() -> DictSink:
    return DictSink()


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Write lines (text, bytes or objects) to a file."""

    def write(*lines: Any, name: str = "traces.jsonl", end: bytes = b"\n") -> Path:
        path = tmp_path / name
        encoded = [
            line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
            for line in lines
        ]
        path.write_bytes(end.join(encoded) + end)
        return path

    return write

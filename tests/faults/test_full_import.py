"""An import that the disk cannot hold says what came in before; a backup leaves nothing."""

from __future__ import annotations

import json
import random
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from calibrate.types import Record, Trace
from db import open_store
from tests.db.make import NOW

LIMIT = 1_500_000  # bytes that a file may have


def test_an_import_that_fills_the_disk_says_how_much_came_in(tmp_path: Path) -> None:
    file, store = tmp_path / "many.jsonl", tmp_path / "store.db"
    with file.open("w") as out:
        for number in range(3_000):
            row = {"trace_id": f"t{number}", "answer": f"word {number} " * 20, "sources": {"1": f"source {number}"}}
            out.write(json.dumps(row) + "\n")
    result = subprocess.run(
        [sys.executable, "-m", "calibrate", "import", str(file), "--store", f"sqlite:///{store}"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT)),
    )
    with closing(sqlite3.connect(store)) as connection:
        ((kept,),) = connection.execute("SELECT count(*) FROM traces")
    assert 0 < kept < 3_000
    assert result.returncode == 1
    assert f"{kept:,} traces imported before are in the store; the same command goes on" in result.stderr


@pytest.mark.parametrize("verb", [["backup"], ["export", "--all"]])
def test_a_copy_that_fills_the_disk_leaves_no_file_and_says_what_to_do(tmp_path: Path, verb: list[str]) -> None:
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    texts = random.Random(1)
    store.traces.add(
        [Record(n, Trace(f"t{n}", texts.randbytes(2_000).hex())) for n in range(500)], labels_as=None, now=NOW
    )
    store.close()
    folder = tmp_path / "copies"
    folder.mkdir()
    result = subprocess.run(
        [sys.executable, "-m", "calibrate", *verb, str(folder / "copy"), "--store", f"sqlite:///{tmp_path}/store.db"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
    )
    assert result.returncode == 1
    assert "free some space, or name a file on another" in result.stderr
    assert list(folder.iterdir()) == []

"""SIGTERM ends import, detect and worker in order: the batch is whole or not there, and what is kept is said."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from db import open_store
from tests.workflow.making import draw, fill

ROOT = Path(__file__).parents[2]
# Every score takes a while, so that the signal comes in the middle.
SLOW = """
import sys, time
from calibrate.cli import main
from calibrate.detectors import token_overlap
score = token_overlap.TokenOverlap.score
def slow(self, traces):
    for each in score(self, traces):
        time.sleep(0.05)
        yield each
token_overlap.TokenOverlap.score = slow
sys.exit(main(sys.argv[1:]))
"""


def end(process: subprocess.Popen[str], path: Path, query: str, wanted: int) -> str:
    """Ask the process to end once the store holds so many rows. Returns what it says."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
        if not path.exists():
            continue
        try:
            with closing(sqlite3.connect(path)) as database:
                if database.execute(query).fetchone()[0] >= wanted:
                    break
        except sqlite3.Error:
            continue
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    return said


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_an_import_keeps_whole_batches_and_says_how_many(tmp_path: Path) -> None:
    file, path = tmp_path / "t.jsonl", tmp_path / "live.db"
    lines = (json.dumps({"trace_id": f"t{n}", "answer": f"{n}", "sources": {"1": "s"}}) for n in range(60_000))
    file.write_text("\n".join(lines))
    importing = start("-m", "calibrate", "import", str(file), "--store", f"sqlite:///{path}")
    message = end(importing, path, "SELECT count(*) FROM traces", 1)
    said = re.search(r"stopped; ([\d,]+) traces imported so far are in the store; the same command goes on", message)
    assert said, message
    with closing(sqlite3.connect(path)) as database:
        (traces,) = database.execute("SELECT count(*) FROM traces").fetchone()
        (whole,) = database.execute("SELECT count(DISTINCT trace_pk) FROM sources").fetchone()
    assert traces == whole >= int(said[1].replace(",", ""))
    assert 0 < traces < 60_000
    assert message.count("\n") == 1


@pytest.mark.parametrize("verb", [("detect", "token_overlap", "--all"), ("worker",)])
def test_a_run_is_stopped_and_not_left_running(tmp_path: Path, verb: Sequence[str]) -> None:
    path = tmp_path / "live.db"
    store = open_store(f"sqlite:///{path}")
    fill(store, *draw(400))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM scores")
    if verb == ("worker",):
        from calibrate.workflow.detection import detect

        detect.queue(store, ["token_overlap"], detect.scope_of(everything=True))
    run = start("-c", SLOW, *verb, "--store", store.url)
    message = end(run, path, "SELECT count(*) FROM runs WHERE status = 'running' AND done > 0", 1)
    said = re.search(r"stopped; run 1: (\d+) of 400 scores are in the store; `detect` goes on from there", message)
    assert said, message
    assert store.runs.get(1).status == "stopped"
    with closing(sqlite3.connect(path)) as database:
        (scores,) = database.execute("SELECT count(*) FROM scores").fetchone()
    assert scores == int(said[1]) > 0

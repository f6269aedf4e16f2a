"""Ctrl-C ends long work in order: what is done is kept, a file is whole or as it was, a sentence says how to go on."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.workflow.detection import detect
from calibrate.workflow.releasing import release
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.making import draw as drawn
from tests.workflow.making import fill, save
from tests.workflow.week.test_weekly import NAME, log

ROOT = Path(__file__).parents[2]
# Every score takes a while, and every page that an export reads, so that the signal comes in the middle.
SLOW = """
import pathlib, sys, time
from calibrate.cli import main
from calibrate.detectors import token_overlap
import db.labels, db.scores, db.tables.numbers, db.upkeep.rows
def slow(of, name):
    quick = getattr(of, name)
    def each(*args, **kwargs):
        for item in quick(*args, **kwargs):
            time.sleep(0.05)
            pathlib.Path(BEGAN).touch()
            yield item
    setattr(of, name, each)
slow(token_overlap.TokenOverlap, "score")
slow(db.scores.Scores, "outcomes")
slow(db.labels.Labels, "export")
slow(db.upkeep.rows.Snapshot, "rows")
slow(db.tables.numbers, "_streamed")
db.tables.numbers.CHUNK = 4
sys.exit(main(sys.argv[1:]))
"""


def interrupt(url: str, *verb: str, once: Callable[[], object] | None = None) -> str:
    """Start a verb and press Ctrl-C as soon as `once` is true, or something slow began. Returns what it says."""
    began = Path(url.removeprefix("sqlite:///")).parent / "began"
    once = once or began.exists
    # A shell's background job ignores SIGINT, and so would what it starts.
    interruptible = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-c", SLOW.replace("BEGAN", repr(str(began))), *verb, "--store", url]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None and not once():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.count("\n") == 1
    return said


def rows(path: Path, query: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(query).fetchone()[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "live.db"


@pytest.fixture
def store(path: Path) -> Store:
    path.parent.mkdir()
    return open_store(f"sqlite:///{path}")


LABEL_STUDIO = ("labels", "export", "l.json", "--format", "label-studio")
EXPORTS = [("scores", "export", "s.jsonl"), ("labels", "export", "l.csv"), LABEL_STUDIO]
ARCHIVE = ("export", "--all", "all.zip")  # never replaces a file


@pytest.mark.parametrize(
    ("verb", "there"), [*((verb, there) for verb in EXPORTS for there in (True, False)), (ARCHIVE, False)]
)
def test_a_stopped_export_leaves_no_half_file(store: Store, tmp_path: Path, verb: Sequence[str], there: bool) -> None:
    fill(store, *drawn(400))
    name = next(word for word in verb if "." in word)
    file, words = tmp_path / name, [str(tmp_path / word) if word == name else word for word in verb]
    if there:
        assert main([*words, "--store", store.url]) == 0
        words.append("--force")
    before = file.read_bytes() if there else None
    said = interrupt(store.url, *words, once=lambda: list(tmp_path.glob(".touchstone-*.tmp")))
    wanted = "is as it was" if there else "was not written"
    assert f"stopped; {file} {wanted}; the same command writes all of it" in said
    assert (file.read_bytes() if file.exists() else None) == before
    assert [each.name for each in tmp_path.iterdir() if each.is_file() and each != file] == []
    assert main([*words, "--store", store.url]) == 0


def test_a_stopped_week_keeps_its_scores_and_goes_on(store: Store, path: Path) -> None:
    log(store, 60, hours=4 * 24, model="old", labelled=True)
    detect.work(store, run_id=detect.queue(store, [NAME], {"all": True}).id)
    save(store, "f1")
    release.release(store, ReleaseRequest(by="ann"), now=detect.utc_now() - timedelta(hours=95))
    log(store, 300, hours=2, model="new", labelled=False)
    count = "SELECT count(*) FROM scores"
    said = interrupt(store.url, "weekly", once=lambda: rows(path, count) > 60)
    assert "stopped; what was scored and drawn so far is kept; the same command goes on from there" in said
    kept = rows(path, count) - 60
    assert 0 < kept < 300
    assert main(["weekly", "--store", store.url]) == 0
    assert rows(path, count) == 360


def test_a_stopped_recalibration_is_a_stopped_run_that_goes_on(
    store: Store, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(store, 100, hours=4 * 24, model="old", labelled=True)
    detect.work(store, run_id=detect.queue(store, [NAME], {"all": True}).id)
    save(store, "f1")
    release.release(store, ReleaseRequest(by="ann"), now=detect.utc_now())
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM scores")
    going = "SELECT count(*) FROM runs WHERE status = 'running' AND done > 0"
    said = interrupt(store.url, "recalibrate", "--dry-run", once=lambda: rows(path, going))
    scores = rows(path, "SELECT count(*) FROM scores")
    assert f"stopped; run 2: {scores} of 100 scores are in the store; `recalibrate` goes on from there" in said
    assert 0 < scores < 100
    assert store.runs.get(2).status == "stopped"
    main(["recalibrate", "--dry-run", "--store", store.url])
    assert store.runs.get(3).counts[NAME]["scored"] == 100 - scores


def test_a_stopped_draw_draws_no_sample(store: Store) -> None:
    fill(store, *drawn(400))
    words = ("sample", "w47", "--design", "octave", "--since", "all", "--seed", "1")
    assert "stopped; no sample was drawn; the same command draws it" in interrupt(store.url, *words)
    assert store.samples.list() == []
    assert main([*words, "--store", store.url]) == 0
    assert [sample.name for sample in store.samples.list()] == ["w47"]

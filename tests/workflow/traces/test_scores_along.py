"""Scores that come along with traces are stored, whichever way the traces come."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import calibrate
from calibrate.cli import main
from calibrate.runtime import TraceLog
from db import open_store

ANSWERS = [(f"t{n}", f"Answer {n}.", n / 10) for n in range(10)]


def by_file(url: str, folder: Path) -> None:
    lines = [
        json.dumps({"trace_id": name, "answer": text, "scores": {"ragas": score}}) for name, text, score in ANSWERS
    ]
    (folder / "traces.jsonl").write_text("\n".join(lines))
    assert main(["import", str(folder / "traces.jsonl"), "--store", url]) == 0


def by_service(url: str, folder: Path) -> None:
    with closing(open_store(url)):
        pass
    log = TraceLog(url)
    for name, text, score in ANSWERS:
        log.append(trace_id=name, answer=text, scores={"ragas": score})
    log.close()
    assert main(["import", "--logged", "--store", url]) == 0


def by_query(url: str, folder: Path) -> None:
    app = folder / "app.db"
    with closing(sqlite3.connect(app)) as connection, connection:
        connection.execute("CREATE TABLE chats (trace_id TEXT, answer TEXT, at TEXT, scores TEXT)")
        rows = [
            (name, text, f"2026-11-0{n // 5 + 1}", json.dumps({"ragas": s}))
            for n, (name, text, s) in enumerate(ANSWERS)
        ]
        connection.executemany("INSERT INTO chats VALUES (?, ?, ?, ?)", rows)
    query = ["--query", "select * from chats where at > :since", "--cursor", "at", "--since", "all"]
    assert main(["pull", "sql", "--url", f"sqlite:///{app}", *query, "--store", url]) == 0


def by_frame(url: str, folder: Path) -> None:
    frame = pd.DataFrame([{"trace_id": name, "answer": text, "scores": {"ragas": s}} for name, text, s in ANSWERS])
    with calibrate.open(url) as bench:
        assert bench.add(frame).imported == len(ANSWERS)


@pytest.mark.parametrize("bring", [by_file, by_service, by_query, by_frame])
def test_scores_are_a_detectors(bring: Callable[[str, Path], None], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    bring(url, tmp_path)
    assert main(["scores", "define", "ragas", "--flag-when", "below", "--store", url]) == 0
    with calibrate.open(url) as bench:
        scores = bench.scores()
        scores = scores[scores["detector"] == "ragas"]
        assert dict(zip(scores["trace_id"], scores["score"], strict=True)) == {name: s for name, _, s in ANSWERS}

"""The kept vectors: the same bytes back, within bounds, and never in the way of a score."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from calibrate.backends.embedding import vectors
from calibrate.backends.embedding.model import Embedder, embedder
from calibrate.backends.embedding.vectors import Vectors

MB = 1_000_000


def some(first: int, count: int, width: int = 384) -> dict[bytes, np.ndarray]:
    rng = np.random.default_rng(first)
    return {bytes([0, *i.to_bytes(3, "big")]): rng.random(width, np.float32) for i in range(first, first + count)}


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    given = some(0, 1200)
    Vectors("m@1", tmp_path / "deep" / "v.sqlite", limit=100 * MB).add(given)
    found = Vectors("m@1", tmp_path / "deep" / "v.sqlite", limit=100 * MB).get([*given, b"unknown"])
    assert found.keys() == given.keys()
    assert all(np.array_equal(found[key], given[key]) for key in given)
    assert Vectors("m@2", tmp_path / "deep" / "v.sqlite", limit=100 * MB).get(list(given)) == {}


def test_the_file_stays_within_its_limit_and_keeps_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    kept = Vectors("m", path, limit=3 * MB)
    for first in range(0, 12_000, 500):
        kept.add(some(first, 500))
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size < 5 * MB
    assert len(kept.get(list(some(11_500, 500)))) == 500
    assert kept.get(list(some(0, 500))) == {}


def test_what_was_used_lately_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Vectors("m", tmp_path / "v.sqlite", limit=3 * MB)
    kept.add(some(0, 500))
    monkeypatch.setattr(vectors.time, "time", lambda: 9e9)  # another day
    kept.get(list(some(0, 500)))
    monkeypatch.undo()
    for first in range(1000, 12_000, 500):
        kept.add(some(first, 500))
    assert len(kept.get(list(some(0, 500)))) == 500


@pytest.mark.parametrize("broken", ["a folder", "no database"])
def test_a_broken_file_costs_time_only(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "v.sqlite"
    path.mkdir() if broken == "a folder" else path.write_bytes(b"not SQLite" * 1000)
    kept = Vectors("m", path, limit=MB)
    kept.add(some(0, 3))
    assert kept.get(list(some(0, 3))) == {}


def test_two_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    one, other = (Vectors("m", tmp_path / "v.sqlite", limit=100 * MB) for _ in range(2))
    for first in range(0, 400, 20):
        one.add(some(first, 20))
        other.add(some(first, 20))
    assert len(one.get(list(some(0, 400)))) == len(some(0, 400))


@pytest.mark.model
def test_another_process_does_not_ask_the_model_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why := embedder().unavailable():
        pytest.skip(why)
    monkeypatch.setenv("TOUCHSTONE_CACHE", str(tmp_path))
    first = Embedder(embedder().model)
    made = first.encode(["one", "two"])
    second = Embedder(embedder().model)
    monkeypatch.setattr(second, "_network", lambda: pytest.fail("the model was loaded"))
    assert np.array_equal(second.encode(["two", "one"]), made[::-1])
    monkeypatch.setenv("TOUCHSTONE_CACHE_MB", "0")
    assert vectors.location() is None

"""What a killed writer leaves is removed by a later one, and what a living one is writing is left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrate.ingest.labels import write_labels
from calibrate.ingest.scores import write_scores
from calibrate.targets import replacing
from calibrate.thresholds.files import deliver
from calibrate.types import Label
from db.upkeep.staging import new_file


def _new_file(path: Path) -> None:
    with new_file(path.with_name("b.db")) as temporary:
        temporary.write_text("x")


WRITERS: dict[str, Callable[[Path], object]] = {
    "thresholds": lambda path: deliver(b"{}", str(path)),
    "labels": lambda path: write_labels([Label("t1", "ann", "clean")], path.with_name("l.csv")),
    "scores": lambda path: write_scores([], str(path.with_name("s.csv"))),
    "backup": _new_file,
}


def temporaries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_later_writer_removes_what_a_killed_one_left(tmp_path: Path, writer: str) -> None:
    left, written, foreign = (tmp_path / f".touchstone-{name}.tmp" for name in ("0" * 16, "1" * 16, "mine"))
    for file in (left, written, foreign):
        file.touch()
    an_hour_ago = time.time() - 3700
    for file in (left, foreign):
        os.utime(file, (an_hour_ago, an_hour_ago))
    WRITERS[writer](tmp_path / "t.json")
    assert sorted(temporaries(tmp_path)) == [written.name, foreign.name], "another process may still be writing"


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("old")

    def fail() -> None:
        with replacing(tmp_path / "t.csv") as temporary:
            temporary.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert (temporaries(tmp_path), (tmp_path / "t.csv").read_text()) == ([], "old")

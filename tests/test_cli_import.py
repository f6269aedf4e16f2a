"""`import` and its preview: they agree, and one file that cannot be read stops no other."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from calibrate.cli import main

GOOD = {"trace_id": "a", "question": "How long?", "answer": "Two years."}
ALIASED = {"request": "b", "prompt": "How long?", "response": "Two years."}


@pytest.fixture
def at(sqlite_url: str) -> tuple[str, str]:
    return ("--store", sqlite_url)


def lines(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def document(path: Path, holds: object) -> str:
    path.write_text(json.dumps(holds, indent=1))
    return str(path)


def test_a_file_that_cannot_be_used_stops_no_other(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path
) -> None:
    first, last = lines(tmp_path / "a.jsonl", GOOD), lines(tmp_path / "c.jsonl", {**GOOD, "trace_id": "c"})
    broken = document(tmp_path / "b.json", {"foo": 1})
    assert main(["import", first, broken, last, *at]) == 2
    out = capsys.readouterr().out
    assert out.count("1 imported") == 2
    assert f"{broken}: not imported: b.json has no 'answer'" in out
    assert main(["import", first, broken, last, "--json", *at]) == 2
    done = json.loads(capsys.readouterr().out)
    assert (done["duplicates"], list(done["refused"])) == (2, [broken])
    assert main(["import", broken, *at]) == 2
    assert "b.json has no 'answer'" in capsys.readouterr().err


def test_a_strict_import_ends_at_a_file_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path
) -> None:
    broken, last = document(tmp_path / "b.json", {"foo": 1}), lines(tmp_path / "c.jsonl", GOOD)
    assert main(["import", broken, last, "--strict", *at]) == 2
    assert main(["import", last, "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["imported"] == 1


def test_a_preview_names_the_command_that_imports_with_what_it_assumed(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path
) -> None:
    path = lines(tmp_path / "my log.jsonl", ALIASED)
    assert main(["import", path, *at]) == 2
    capsys.readouterr()
    assert main(["import", "--preview", path]) == 0
    said = capsys.readouterr().out
    assert "assumed: question from 'prompt' and answer from 'response'" in said
    command = shlex.split(said.partition("`python -m calibrate ")[2].partition("`")[0])
    assert main([*command, "--json", *at]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["imported"], done["fields"]["question"]) == (1, 1)


def test_a_preview_reads_what_import_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Trace ID,prompt,answer\na,How long?,Two years.\n")
    assert main(["import", "--preview", str(path), "--json"]) == 0
    (seen,) = json.loads(capsys.readouterr().out)["files"]
    assert (seen["n"], seen["columns"], seen["fields"]["question"]) == (1, {}, 0)
    assert "learned" not in seen["detectors"]  # no head is fitted to labels


def test_detectors_on_labelled_traces_where_there_are_none(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path
) -> None:
    assert main(["import", lines(tmp_path / "a.jsonl", GOOD), *at]) == 0
    assert "`detect --list --all` says which" in capsys.readouterr().out
    assert main(["detect", "--list", *at]) == 0
    said = capsys.readouterr().out
    assert "No trace is labelled yet" in said
    assert "detect --list --all" in said
    assert main(["detect", "--list", "--all", *at]) == 0
    assert "Ready" in capsys.readouterr().out

"""`files`: what counts, from a file and back to one, refused with a sentence, ours again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from db import open_store

NAME = "prompts/judge_yes_no.txt"
PACKAGED = (Path(__file__).parent.parent / "calibrate/backends/files" / NAME).read_text(encoding="utf-8")


@pytest.fixture
def at(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    open_store(sqlite_url).close()
    monkeypatch.setenv("TOUCHSTONE_USER", "ann")
    return ("--store", sqlite_url)


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    code = main([*args, "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, json.loads(out)


def test_a_file_goes_out_comes_back_changed_and_is_ours_again(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path
) -> None:
    code, every = call(capsys, "files", *at)
    assert code == 0
    (before,) = (one for one in every["files"] if one["file"] == NAME)
    assert (before["ours"], before["saved_by"], before["used_by"]) == (True, None, ["judge_yes_no"])
    assert main(["files", "show", NAME, *at]) == 0
    assert capsys.readouterr().out == PACKAGED

    (tmp_path / "own.txt").write_text(PACKAGED + "Be strict: 厳しく.\n", encoding="utf-8")
    code, saved = call(capsys, "files", "set", NAME, str(tmp_path / "own.txt"), *at)
    assert (code, saved["changed"], saved["ours"], saved["saved_by"]) == (0, True, False, "ann")
    assert saved["version"] != before["version"]
    assert not call(capsys, "files", "set", NAME, str(tmp_path / "own.txt"), *at)[1]["changed"]
    assert call(capsys, "files", "show", NAME, *at)[1]["text"].endswith("厳しく.\n")
    assert main(["files", *at]) == 0
    assert "ann, 20" in capsys.readouterr().out

    code, back = call(capsys, "files", "reset", NAME, *at)
    assert (code, back["changed"], back["version"]) == (0, True, before["version"])
    assert not call(capsys, "files", "reset", NAME, *at)[1]["changed"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show"], "it is `files show NAME`, with 0 given"),
        (["set", NAME], "it is `files set NAME FILE`, with 1 given"),
        (["list", NAME], "it is `files list`"),
        (["show", "prompts/judge.txt"], "there is no file 'prompts/judge.txt'"),
        (["reset", "../../../etc/passwd"], "there is no file"),
        (["set", NAME, "no/such/file"], "cannot read 'no/such/file'"),
        (["set", NAME, "."], "cannot read '.'"),
        (["set", NAME, "{latin}"], "is not UTF-8 (byte 2)"),
        (["set", NAME, "{short}"], "lacks {answer}, {context}, {fence}"),
        (["set", "prices.csv", "{short}"], "prices.csv, line 1"),
        (["set", NAME, "{huge}"], "more than 200,000 characters"),
    ],
)
def test_what_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path, args: list[str], said: str
) -> None:
    (tmp_path / "latin").write_bytes(b"n\xe9")
    (tmp_path / "short").write_text("Is it right?")
    (tmp_path / "huge").write_text("x" * 900_000)
    given = [str(tmp_path / one[1:-1]) if one.startswith("{") else one for one in args]
    code, document = call(capsys, "files", *given, *at)
    assert code == 2
    assert said in document["error"]
    assert all(one["ours"] for one in call(capsys, "files", *at)[1]["files"])

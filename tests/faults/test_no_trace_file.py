"""What is no file, or a damaged one, is called that before anything is read for ever or taken for empty."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrate.cli import main

LINES = "\n".join(json.dumps({"trace_id": f"t{n}", "answer": random.Random(n).randbytes(90).hex()}) for n in range(50))
WHOLE = gzip.compress(LINES.encode())


def run(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, str]:
    code = main([*words, "--store", f"sqlite:///{folder}/store.db"])
    said = capsys.readouterr()
    return code, said.err + said.out


@pytest.mark.parametrize(("end", "how"), [(5, "cut off"), (12, "cut off"), (40, "cut off"), (0, "damaged")])
def test_a_gzip_file_of_which_nothing_can_be_read_is_called_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: int, how: str
) -> None:
    content = WHOLE[:end] if end else WHOLE[:12] + b"\xff" * 8 + WHOLE[20:]
    for name, verb, item in (("t.jsonl.gz", ["import"], "trace"), ("l.gz", ["labels", "import"], "label")):
        (tmp_path / name).write_bytes(content)
        code, said = run(capsys, tmp_path, *verb, str(tmp_path / name))
        assert (code, f"{name} is a compressed file that is {how} before its first {item}" in said) == (2, True)


@pytest.mark.parametrize(
    ("make", "kind"),
    [(Path.mkdir, "a folder"), (os.mkfifo, "a pipe"), (lambda path: path.symlink_to("/dev/zero"), "a device")],
)
def test_what_is_no_file_is_refused_by_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], object], kind: str
) -> None:
    make(tmp_path / "t.jsonl")
    code, said = run(capsys, tmp_path, "import", str(tmp_path / "t.jsonl"))
    assert (code, f"is {kind}, and only files are read" in said) == (2, True)


def test_what_strict_keeps_of_several_files_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, other = (tmp_path / f"{name}.jsonl" for name in ("good", "bad", "other"))
    good.write_text(LINES)
    bad.write_text(LINES.replace('"t', '"u') + "\nno JSON")
    other.write_text('{"trace_id": "v1", "answer": "new"}\n{"trace_id": "t1", "answer": "not what the store has"}')
    code, said = run(capsys, tmp_path, "import", "--strict", str(good), str(bad))
    assert (code, "nothing was imported: 1 line of" in said) == (2, True)
    assert "50 traces of the files before it are in the store" in said
    # What only the store can tell comes out when it is written: the rest is kept, and the exit code says so.
    code, said = run(capsys, tmp_path, "import", "--strict", str(other), "--json")
    assert (code, json.loads(said)["imported"], json.loads(said)["rejected"]) == (2, 1, 1)
    assert run(capsys, tmp_path, "import", str(other), "--json")[0] == 0

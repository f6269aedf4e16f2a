"""Progress on a terminal, and nowhere else; Ctrl-C stops a run and keeps its scores."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.cli.output import table
from calibrate.workflow.detection import detect
from db import open_store

if sys.platform == "win32":
    pytest.skip("there is no pty", allow_module_level=True)
import pty

ROOT = Path(__file__).parent.parent


def write(path: Path, count: int) -> str:
    source = "Parcels leave our warehouse before noon."
    records = ({"trace_id": f"t{n}", "answer": f"Parcel {n} leaves.", "sources": {"1": source}} for n in range(count))
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


def on_a_terminal(*arguments: str) -> str:
    """What the command line writes to standard error, if that is a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "calibrate", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 4096):
                written += part
        except OSError:  # the other end has closed
            pass
    os.close(ours)
    assert process.returncode == 0
    return written.decode()


def test_an_import_shows_its_progress_on_a_terminal_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, store = write(tmp_path / "traces.jsonl", 3000), f"sqlite:///{tmp_path}/store.db"
    shown = on_a_terminal("import", file, "--store", store)
    assert re.search("[123],000 of (about )?[123],[0-9]{3} traces", shown)
    assert on_a_terminal("import", file, "--store", store, "--json") == ""
    assert main(["import", file, "--store", store]) == 0
    assert capsys.readouterr().err == ""


def test_an_interrupted_run_is_stopped_and_keeps_its_scores(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    main(["import", write(tmp_path / "traces.jsonl", 3000), "--store", url])
    store = open_store(url)
    queued = detect.queue(store, ["token_overlap"], detect.scope_of(everything=True))

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        detect.work(store, run_id=queued.id, on_progress=interrupt)
    assert store.runs.get(queued.id).status == "stopped"
    detect.queue(store, ["token_overlap"], detect.scope_of(everything=True))
    finished = detect.work(store)
    assert finished is not None
    tally = finished.counts["token_overlap"]
    assert tally["reused"] > 0
    assert tally["scored"] + tally["reused"] == 3000


def test_a_table_on_a_terminal_fits_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("detector", "why"), ("rouge_l", "a [reason] " * 20), ("x" * 70, "y")]
    assert table(rows).splitlines()[1].endswith("[reason]")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    lines = re.sub(r"\x1b\[\d*m", "", table(rows)).splitlines()
    assert max(map(len, lines)) <= 60
    assert "".join(lines).count("[reason]") == 20  # text in brackets is no markup

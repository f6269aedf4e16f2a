"""`/healthz` of the workbench and of `serve` tells of a store that cannot be read any more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from db import open_store
from tests.faults.test_outside import ROOT, get, start
from tests.workflow.making import draw, fill


def test_the_workbench_is_not_well_over_a_store_that_is_gone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    fill(store, *draw(5))
    store.close()
    server, port = start(tmp_path, ["-m", "pages.shell.serve"], "127.0.0.1")
    try:
        status, _, body = get(port, "/healthz")
        assert (status, json.loads(body)) == (200, {"status": "ok"})
        (tmp_path / "store.db").unlink()
        status, _, body = get(port, "/healthz")
        assert (status, "is gone" in json.loads(body)["error"]) == (503, True)
    finally:
        server.terminate()
        server.wait(timeout=20)


def test_serve_is_not_well_over_a_store_that_was_replaced(tmp_path: Path) -> None:
    for name in ("store.db", "other.db"):
        open_store(f"sqlite:///{tmp_path}/{name}").close()
    url = f"sqlite:///{tmp_path}/store.db"
    command = [sys.executable, "-m", "calibrate", "serve", "--port", "0", "--store", url]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        port = int(server.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
        assert get(port, "/healthz")[0] == 200
        (tmp_path / "other.db").replace(tmp_path / "store.db")
        status, _, body = get(port, "/healthz")
        assert (status, "was replaced" in json.loads(body)["error"]) == (503, True)
    finally:
        server.terminate()
        server.communicate(timeout=20)

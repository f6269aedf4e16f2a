"""A worker that has died is dead, even while nobody has reaped its process."""

from __future__ import annotations

import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calibrate.types import Record, Trace
from calibrate.workflow.detection.detect import free_dead
from db import open_store


@pytest.mark.skipif(sys.platform != "linux", reason="a zombie is told from /proc")
def test_the_run_of_a_zombie_is_free_at_once(tmp_path: Path) -> None:
    """In a container whose first process reaps nobody, a killed worker stays a zombie for good."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        while b") Z" not in Path(f"/proc/{child}/stat").read_bytes():
            time.sleep(0.01)
        now = datetime.now(UTC)
        store = open_store(f"sqlite:///{tmp_path}/touchstone.db")
        store.traces.add([Record(1, Trace("t1", "an answer"))], labels_as=None, now=now)
        queued = store.runs.queue([{"name": "token_overlap", "params": {}}], {"all": True}, now=now)
        for worker, freed in ((os.getpid(), []), (child, [queued.id])):
            assert store.runs.claim(f"{socket.gethostname()}:{worker}", now=now)
            assert free_dead(store) == freed
            store.runs.requeue(queued.id, f"{socket.gethostname()}:{worker}", now=now)
    finally:
        os.waitpid(child, 0)

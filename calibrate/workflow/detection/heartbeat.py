"""Tell the other workers that the one of a run is alive, so that none takes the run from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from calibrate.errors import StoreError
from calibrate.workflow.detection.scoring import utc_now
from db import Store
from db.runs import STALE

EVERY = STALE / 4


@contextmanager
def beating(store: Store, run_id: int, worker: str) -> Iterator[None]:
    """Keep the worker of a run known to be alive while the block runs.

    Progress is not enough: one slow reply of a judge, or a cluster that starts, may take longer than STALE.
    """
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(EVERY.total_seconds()):
            with suppress(StoreError):  # the scores cannot be saved either, and that is said
                store.runs.beat(run_id, worker, now=utc_now())

    threading.Thread(target=beat, name=f"heartbeat of run {run_id}", daemon=True).start()
    try:
        yield
    finally:
        ended.set()

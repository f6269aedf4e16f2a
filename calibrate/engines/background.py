"""Start worker processes in the background, as the workbench does for every run."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
import tempfile
import threading
from hashlib import blake2b
from pathlib import Path

from calibrate.errors import TouchstoneError

ROOT = Path(__file__).resolve().parents[2]
_started: dict[tuple[str, int], subprocess.Popen[bytes]] = {}


def start_worker(store_url: str, run_id: int) -> int:
    """Start a process that executes the run and outlives this one. Returns its process id.

    The store's URL is passed in the environment, where other users of the machine cannot read its password.
    """
    url = absolute(store_url)
    log = log_path(store_url, run_id)
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "calibrate", "worker", "--run", str(run_id)],
                cwd=ROOT,
                env={**os.environ, "TOUCHSTONE_STORE": url},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise TouchstoneError(f"a worker process could not be started: {error.strerror}") from error
    _started[url, run_id] = process
    # A dead child that nobody waits for keeps its process id and would look alive.
    threading.Thread(target=process.wait, name=f"worker of run {run_id}", daemon=True).start()
    return process.pid


def is_starting(store_url: str, run_id: int) -> bool:
    """Tell whether a worker that this process started for the run is alive. It may not have claimed the run yet."""
    process = _started.get((absolute(store_url), run_id))
    return process is not None and process.poll() is None


def log_path(store_url: str, run_id: int) -> Path:
    """The log file of the run's workers, in a folder that only this user can read."""
    folder = Path(tempfile.gettempdir()) / f"touchstone-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    store = blake2b(absolute(store_url).encode(), digest_size=6).hexdigest()
    return folder / f"run-{store}-{run_id}.log"


def absolute(store_url: str) -> str:
    """Make the path of an SQLite URL absolute: the worker runs in another folder."""
    scheme, mark, path = store_url.partition(":///")
    if not scheme.startswith("sqlite") or not mark or path in ("", ":memory:") or Path(path).is_absolute():
        return store_url
    return f"{scheme}:///{Path(path).absolute()}"

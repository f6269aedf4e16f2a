"""Kill a process in the middle of its work."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable


def kill_during(work: Callable[[], object], after: float) -> bool:
    """Run `work` in a forked process and kill it `after` seconds later. Gives whether it had ended by then.

    A fork starts in a millisecond, so that a test can kill often. The work opens its own store.
    """
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(after)
    ended, _ = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return bool(ended)

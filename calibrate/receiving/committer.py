"""Keep requests in the store before they are acknowledged. Those that wait share one commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Final

from calibrate.types import Arrival

Append = Callable[[Sequence[Arrival]], None]
MOST_BYTES: Final = 64 * 1024 * 1024  # in one commit


class Committer:
    """One thread that writes what waits. `append` keeps arrivals in one transaction, or raises."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._waiting: list[tuple[Arrival, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    async def commit(self, arrival: Arrival) -> None:
        """Return when the arrival is safe. Raises what `append` raised."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._changed:
            self._waiting.append((arrival, loop, done))
            self._changed.notify()
        await done

    def close(self) -> None:
        """End the thread after what waits is written."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                if not self._waiting:
                    return
                group = self._take()
            problem: Exception | None = None
            try:
                self._append([arrival for arrival, _, _ in group])
            except Exception as error:  # whoever waits must hear of it, whatever it is
                problem = error
            for _, loop, done in group:
                try:
                    loop.call_soon_threadsafe(_resolve, done, problem)
                except RuntimeError:  # the server has ended meanwhile
                    continue

    def _take(self) -> list[tuple[Arrival, asyncio.AbstractEventLoop, asyncio.Future[None]]]:
        size = count = 0
        for arrival, _, _ in self._waiting:
            size += len(arrival.body)
            if count and size > MOST_BYTES:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group


def _resolve(done: asyncio.Future[None], problem: Exception | None) -> None:
    if done.done():  # the client has gone
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)

"""How far long work is: what is done, how fast, and how long it will still take."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from calibrate.report.numbers import about, count, duration

WINDOW = 20.0  # seconds that the rate is taken over
LEAST = 1.0  # seconds before there is a rate
APART = 0.2  # seconds between two readings that are kept


@dataclass
class Rate:
    """Units a second over the last seconds: what was quick to skip at the beginning says nothing of what is left.

    Only readings at which something was done are kept, so that work slower than the window has a rate, too.
    """

    _readings: deque[tuple[float, float]] = field(default_factory=deque)

    def read(self, done: float, at: float) -> None:
        """Note how much is done at a time in seconds, on any one clock. Less than before is work begun anew."""
        readings = self._readings
        if readings and done < readings[-1][1]:
            readings.clear()
        if readings and done == readings[-1][1]:
            return
        if len(readings) > 1 and at - readings[-2][0] < APART:
            readings.pop()
        readings.append((at, done))
        while len(readings) > 2 and readings[1][0] <= at - WINDOW:
            readings.popleft()

    def per_second(self, at: float) -> float | None:
        """The rate at a time; None while too little is known. It falls while nothing is done."""
        if len(self._readings) < 2:
            return None
        (began, before), (_, done) = self._readings[0], self._readings[-1]
        return (done - before) / (at - began) if at - began >= LEAST else None


def line(done: float, total: float | None, rate: float | None, noun: str = "", *, estimated: bool = False) -> str:
    """Write "4,096 of 100,000 traces · 1,200/s · about 80 s left"; without a total only the count and the rate.

    `estimated`: the total is an estimate, and said to be one.
    """
    if total is None:
        parts = [count(round(done), noun)]
    else:
        parts = [f"{count(round(done))} of {'about ' if estimated else ''}{count(round(total), noun)}"]
    if rate:
        parts.append(f"{about(rate)}/s")
        if total is not None and math.ceil(total) > done:
            parts.append(f"about {duration((total - done) / rate)} left")
    return " · ".join(parts)

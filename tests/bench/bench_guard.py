"""`Guard.check` with a deadline beside one without: what the threads cost where nothing goes wrong.

On a detector that takes no time, and on four lexical ones with four passages an answer. At most 0.5 ms more.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from calibrate import registry
from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.runtime import Guard
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Score, Source, Trace
from tests.thresholds.make import entry, release

CHECKS, MOST = 2000, 0.5e-3
LEXICAL = ("bleu", "rouge_l", "token_overlap", "word_overlap")
SOURCES = tuple(
    Source(str(n), f"Part {n} is covered for 24 months from the date of purchase. " * 8) for n in range(1, 5)
)


def trace(number: int) -> Trace:
    answer = f"Part {number} is covered for 24 months [1]. It returns within 30 days [2]."
    return Trace(f"t{number}", answer, question="How long?", sources=SOURCES)


def make_release(*names: str) -> ThresholdsFile:
    made = {name: registry.make(name, {}) for name in names}
    return release({name: entry(0.5, params={}, version=detector.version) for name, detector in made.items()})


def measure(guard: Guard) -> list[float]:
    seconds = []
    for number in range(CHECKS):
        subject = trace(number)
        began = time.perf_counter()
        guard.check(subject)
        seconds.append(time.perf_counter() - began)
    return seconds


def instant(self: TokenOverlap, traces: Sequence[Trace]) -> Iterator[Score]:
    return (Score(subject.id, 0.9) for subject in traces)


def main() -> int:
    worst = 0.0
    original = TokenOverlap.score
    for what, names in (("no work", ("token_overlap",)), ("four lexical", LEXICAL)):
        TokenOverlap.score = instant if what == "no work" else original  # type: ignore[method-assign]
        file = make_release(*names)
        plain, bounded = Guard(file, deadline=None), Guard(file)
        measure(plain)
        rounds = [(measure(plain), measure(bounded)) for _ in range(3)]
        before = [second for plain_seconds, _ in rounds for second in plain_seconds]
        after = [second for _, bounded_seconds in rounds for second in bounded_seconds]
        worst = max(worst, median(after) - median(before))
        line = ", ".join(
            f"{name} p50 {median(seconds) * 1e6:.0f} µs p99 {quantiles(seconds, n=100)[98] * 1e6:.0f} µs"
            for name, seconds in (("without a deadline", before), ("with one", after))
        )
        print(f"{what}: {line} ({len(after)} checks each)")
    print(f"worst {worst * 1e6:.0f} µs more at the median, target {MOST * 1e6:.0f} µs")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())

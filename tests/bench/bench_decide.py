"""`decide` on 20 detectors: at most 20 microseconds, whether none of them flags, two, all, or none could score, and
whether each has one threshold or some for segments.

Beside a plain loop that compares 20 numbers, in the same run.
"""

from __future__ import annotations

import sys
import tempfile
import timeit
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from calibrate.runtime import decide, load
from calibrate.thresholds import write
from calibrate.types import Interval, Segments, SegmentThreshold
from tests.thresholds.make import entry, release

OWN = SegmentThreshold(0.5, 100, 20, Interval(0.8), Interval(0.5))
SEGMENTS = Segments("operation", {"qa": OWN, "summary": OWN})
SECONDS, DETECTORS, NUMBER, REPEAT = 20e-6, 20, 500, 40


def plain(thresholds: dict[str, float], scores: dict[str, float]) -> list[str]:
    """The least that any runtime does."""
    return [name for name, threshold in thresholds.items() if scores[name] <= threshold]


def best(call: object, *arguments: object) -> float:
    return min(timeit.repeat(lambda: call(*arguments), number=NUMBER, repeat=REPEAT)) / NUMBER  # type: ignore[operator]


def main() -> int:
    names = [f"detector_{number:02}" for number in range(DETECTORS)]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/thresholds.json"
        write(release({name: entry(0.5, "below") for name in names}), path)
        with load(path, reload_every=0.01) as live:
            loop = best(plain, dict.fromkeys(names, 0.5), dict.fromkeys(names, 0.9))
            worst = 0.0
            cases = {
                "none flags": dict.fromkeys(names, 0.9),
                "two flag": dict.fromkeys(names, 0.9) | dict.fromkeys(names[:2], 0.1),
                "none scored": dict.fromkeys(names),
                "all flag": dict.fromkeys(names, 0.1),
            }
            for what, scores in cases.items():
                once, reloading = best(decide, load(path), scores), best(decide, live, scores)
                worst = max(worst, once, reloading)
                print(f"{what}: {once * 1e6:.1f} µs, {once / loop:.0f} x the plain loop ({loop * 1e6:.2f} µs); "
                      f"with reload_every {reloading * 1e6:.1f} µs")  # fmt: skip
        apart = {"operation": "qa"}
        write(release({name: entry(0.5, "below", segments=SEGMENTS) for name in names}), path)
        segmented = load(path)
        for what, scores in cases.items():
            once = best(partial(decide, segments=apart), segmented, scores)
            worst = max(worst, once)
            print(f"by segment, {what}: {once * 1e6:.1f} µs, {once / loop:.0f} x the plain loop")
    print(f"worst {worst * 1e6:.1f} µs, target {SECONDS * 1e6:.0f} µs")
    return int(worst > SECONDS)


if __name__ == "__main__":
    sys.exit(main())

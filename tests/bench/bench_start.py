"""Cold start of `python -m calibrate --help` and `import calibrate.runtime` against a bare `python -c pass`; decide().

Medians of several processes in one run. Targets: --help under 0.5 s, decide on 20 detectors at most 20 microseconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from calibrate.runtime import decide, load
from calibrate.thresholds import write
from tests.thresholds.make import entry, release

HELP_SECONDS, DECIDE_SECONDS = 0.5, 20e-6


def start(*command: str) -> float:
    """Median seconds from start to end of a fresh process."""
    times = []
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def deciding() -> float:
    with tempfile.TemporaryDirectory() as folder:
        write(release({f"detector_{number}": entry(0.5, "below") for number in range(20)}), f"{folder}/thresholds.json")
        thresholds = load(f"{folder}/thresholds.json")
    scores = dict.fromkeys(thresholds.detectors, 0.9)
    return min(timeit.repeat(lambda: decide(thresholds, scores), number=500, repeat=9)) / 500


def main() -> int:
    bare = start("-c", "pass")
    help_, runtime = start("-m", "calibrate", "--help"), start("-c", "import calibrate.runtime")
    one = deciding()
    print(f"bare python {bare * 1000:.0f} ms; --help {help_ * 1000:.0f} ms ({help_ / bare:.1f} x; < {HELP_SECONDS} s); "
          f"import calibrate.runtime {runtime * 1000:.0f} ms ({runtime / bare:.1f} x)")  # fmt: skip
    print(f"decide, 20 detectors: {one * 1e6:.1f} microseconds (at most {DECIDE_SECONDS * 1e6:.0f})")
    return 0 if help_ < HELP_SECONDS and one <= DECIDE_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())

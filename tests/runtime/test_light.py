"""What a production process pays for: imports and microseconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from calibrate.thresholds import write
from tests.thresholds.make import entry, release

ROOT = Path(__file__).parents[2]
HEAVY = {"pandas", "torch", "streamlit", "sqlalchemy", "sklearn", "scipy", "numpy", "pyarrow", "transformers", "db"}


def modules_after(code: str, *arguments: str) -> set[str]:
    code += "; import sys, json; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


def test_import_is_light(tmp_path: Path) -> None:
    imported = modules_after("import calibrate.runtime")
    assert not imported & (HEAVY | {"jsonschema", "rfc8785", "referencing", "importlib_resources", "asyncio"})
    path = tmp_path / "thresholds.json"
    write(release(), path)
    code = "import sys, calibrate.runtime as r; r.decide(r.load(sys.argv[1]), {'citation_grounding': 0.1})"
    loaded = modules_after(code, str(path))
    assert "jsonschema" in loaded  # the schema is really used on load
    assert not loaded & HEAVY


SPEED = """
import json, sys, timeit
from calibrate.runtime import decide, load
thresholds = load(sys.argv[1])
for value in (0.9, 0.1):  # none flags, all flag
    scores = dict.fromkeys(thresholds.detectors, value)
    print(min(timeit.repeat(lambda: decide(thresholds, scores), number=500, repeat=9)) / 500)
"""


def test_twenty_detectors_in_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.json"
    write(release({f"detector_{number}": entry(0.5, "below") for number in range(20)}), path)
    # In a process of its own, or a coverage tracer would be measured with it.
    command = [sys.executable, "-c", SPEED, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    quiet, loud = map(float, done.stdout.split())
    print(f"decide, 20 detectors: {quiet * 1e6:.1f} µs when none flags, {loud * 1e6:.1f} µs when all flag")
    assert quiet < 20e-6
    assert loud < 40e-6  # twenty sentences are written; a real answer gets one or two

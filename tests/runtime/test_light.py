"""What a production process pays for: imports. Microseconds are in tests/bench/bench_start.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from calibrate.thresholds import write
from tests.thresholds.make import release

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


def test_the_reader_of_spans_is_light() -> None:
    imported = modules_after("import calibrate.ingest.spans.gather, calibrate.ingest.spans.answers")
    assert not imported & (HEAVY | {"opentelemetry", "google", "sqlite3", "asyncio"})

"""Runs benches and writes what each printed into docs/performance.md. A bench that was not run keeps its section.

python docs/make_performance.py                 # every bench but the stores of millions, about an hour on two cores
python docs/make_performance.py engines start   # these only
"""

from __future__ import annotations

import ast
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHES = ROOT / "tests" / "bench"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "scaling.svg"
CAPTION = "Time of every query against the size of the store; in red those that must read all"
LARGE = "size"  # takes a store of millions: `make bench-size`
HEAD = (
    "# Performance\n\n"
    "How long things take, as ratios against a baseline that the same run measured. Seconds are of the machine that a "
    "section names, and of no other.\n"
    "`make bench` runs every bench again and writes this page; `make bench-size` measures stores of millions. "
    '`make bench ARGS="engines start"` runs some.\n\n'
)


def main(names: list[str]) -> int:
    known = sorted(path.stem.removeprefix("bench_") for path in BENCHES.glob("bench_*.py"))
    if unknown := [name for name in names if name not in known]:
        print(f"no bench is called {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    sections = _read_sections()
    failed = 0
    for name in names or [name for name in known if name != LARGE]:
        print(f"== {name}", flush=True)
        sections[name], met = _run(name)
        failed += not met
        _write(sections)
    return 1 if failed else 0


def _run(name: str) -> tuple[str, bool]:
    """Run a bench. Returns its section, and whether it met its targets."""
    path = BENCHES / f"bench_{name}.py"
    started = time.monotonic()
    words = [sys.executable, str(path), *(["--picture", str(PICTURE)] if name == LARGE else [])]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    seconds = time.monotonic() - started
    print(done.stdout, flush=True)
    about = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split("\nRun: ")[0]
    met = done.returncode == 0
    output = "\n".join(line for line in done.stdout.strip().splitlines() if "Warning" not in line)
    run = f"Run on {datetime.now(UTC):%Y-%m-%d}, {_machine()}, in {seconds:,.0f} s. {'Met' if met else 'Missed'}."
    picture = f"\n\n![{CAPTION}]({PICTURE.relative_to(PAGE.parent)})" if name == LARGE else ""
    return f"{about}\n\n{run}{picture}\n\n```text\n{output}\n```\n", met


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB, Python {platform.python_version()}"


def _read_sections() -> dict[str, str]:
    text = PAGE.read_text() if PAGE.exists() else ""
    parts = re.split(r"^## bench_(\w+)\n+", text, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _write(sections: dict[str, str]) -> None:
    rows = ["| bench | measures | targets | run on |", "|---|---|---|---|"]
    for name, section in sorted(sections.items()):
        about, run = section.split("\n\n")[:2]
        first = re.split(r"(?<=[.:]) ", about.replace("\n", " "))[0].rstrip(":.")
        day = re.search(r"\d{4}-\d\d-\d\d", run)
        rows.append(f"| [{name}](#bench_{name}) | {first} | {run.split()[-1].lower().rstrip('.')} | {day and day[0]} |")
    body = "\n".join(f"## bench_{name}\n\n{section.strip()}\n" for name, section in sorted(sections.items()))
    PAGE.write_text(HEAD + "\n".join(rows) + "\n\n" + body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Can the tests fail? Changes the code in random places, one at a time, and runs the tests that reach each place.

A change that no test notices is printed with its diff: a test is missing, or the change means the same. The score by
area counts both alike, so it is a floor.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import coverage
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / ".coverage.mutants"
AREAS = {
    area: area.split("+")
    for area in (
        "calibrate/stats", "calibrate/workflow", "calibrate/report", "calibrate/cli", "calibrate/runtime",
        "calibrate/thresholds", "calibrate/detectors", "calibrate/backends", "calibrate/ingest+calibrate/engines",
        "db", "pages",
    )
}  # fmt: skip
# One plausible slip per kind of expression: others make changes that nobody would write.
PLAUSIBLE = (
    "ReplaceComparisonOperator", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceUnaryOperator", "AddNot",
    "NumberReplacer", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak", "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div", "ReplaceBinaryOperator_Div_Mul",
)  # fmt: skip
FAST = "not (browser or postgres or model)"
MOST_TESTS = 80  # of one place, those of the nearest folder first
SECONDS = 180  # for the tests of one place; a change that makes them hang is noticed


@dataclass(frozen=True)
class Mutant:
    area: str
    path: Path
    line: int
    source: str
    mutated: str

    def diff(self) -> str:
        lines = difflib.unified_diff(self.source.splitlines(), self.mutated.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=12, help="changes an area")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--area", action="append", choices=sorted(AREAS), help="only these areas")
    parser.add_argument("--again", action="store_true", help="take the coverage of the run before")
    arguments = parser.parse_args()
    if not (arguments.again and DATA.exists()):
        measure_coverage()
    tests_by_line = read_coverage()
    rng = random.Random(arguments.seed)
    killed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "touchstone"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", ".coverage*", "*.db"))
        for area in arguments.area or AREAS:
            for mutant in sampled(area, arguments.sample, rng):
                tests = nearest(tests_by_line.get((str(mutant.path), mutant.line), set()), mutant.path)
                noticed = bool(tests) and not passes(copy, mutant, tests)
                total[area] += 1
                killed[area] += noticed
                if not noticed:
                    print(f"\nsurvived: {mutant.path}:{mutant.line} ({len(tests)} tests)\n{mutant.diff()}", flush=True)
    print(f"\n{'area':40} killed")
    for area in total:
        print(f"{area:40} {killed[area]}/{total[area]}  {killed[area] / total[area]:.0%}")
    print(f"{'all':40} {killed.total()}/{total.total()}  {killed.total() / total.total():.0%}")
    return 0


def measure_coverage() -> None:
    """Runs the fast tests once and notes which test reaches which line."""
    config = ROOT / "tests" / "mutants" / "coverage.ini"
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", FAST, "--no-header",
         "--cov", "--cov-config", str(config), "--cov-context=test", "--cov-report="],
        cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(DATA)}, check=False,
    )  # fmt: skip
    print(f"coverage of every test: {time.monotonic() - started:.0f} s", flush=True)


def read_coverage() -> dict[tuple[str, int], set[str]]:
    """The ids of the tests that reach a line: {(path, line): tests}."""
    data = coverage.CoverageData(str(DATA))
    data.read()
    reached: dict[tuple[str, int], set[str]] = {}
    for file in data.measured_files():
        path = str(Path(file).relative_to(ROOT))
        for line, contexts in data.contexts_by_lineno(file).items():
            reached[path, line] = {context.rpartition("|")[0] for context in contexts if "|" in context}
    return reached


def sampled(area: str, n: int, rng: random.Random) -> Iterator[Mutant]:
    """`n` changes of an area, each in a place of its own, drawn from all places with equal chance."""
    operators = [name for name in operator_names() if name.removeprefix("core/").startswith(PLAUSIBLE)]
    places = []
    for folder in AREAS[area]:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            tree = get_ast(path.read_text(encoding="utf-8"))
            for name in operators:
                operator = get_operator(name)()
                positions = (position for node in ast_nodes(tree) for position in operator.mutation_positions(node))
                places += [(path, name, i, start[0]) for i, (start, _) in enumerate(positions)]
    lines = sorted({(path, line) for path, _, _, line in places})
    for path, line in rng.sample(lines, min(n, len(lines))):
        _, name, occurrence, _ = rng.choice([place for place in places if place[0] == path and place[3] == line])
        source = path.read_text(encoding="utf-8")
        mutated = mutate_code(source, get_operator(name)(), occurrence)
        if mutated is not None and mutated != source:
            yield Mutant(area, path.relative_to(ROOT), line, source, mutated)


def nearest(tests: set[str], path: Path) -> list[str]:
    """At most MOST_TESTS of the tests, those whose folder has most names in common with the module first."""
    names = set(path.with_suffix("").parts)
    return sorted(tests, key=lambda test: (-len(names & set(Path(test.partition("::")[0]).parts)), test))[:MOST_TESTS]


def passes(copy: Path, mutant: Mutant, tests: list[str]) -> bool:
    """Whether these tests pass on the changed code."""
    target = copy / mutant.path
    target.write_text(mutant.mutated, encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *tests],
            cwd=copy, capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(mutant.source, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

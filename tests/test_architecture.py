"""The laws of docs/architecture.md that the source can show. Imports are import-linter's (pyproject.toml)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Folders whose files are all the same kind of thing under one contract may hold more than MOST_MODULES.
MOST_MODULES, OF_ONE_KIND = 15, {
    "calibrate/detectors", "calibrate/cli", "db/migrations/versions",
}  # fmt: skip
BANNED = {"found", "one", "said", "told", "asked", "made", "there", "known", "some", "kept"}


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_imports_keep_to_the_rooms() -> None:
    done = subprocess.run([Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[done.stdout.find("Broken contracts") :]


def test_streamlit_serves_nothing_past_the_gate() -> None:
    assert [path.name for path in (ROOT / "pages").glob("*.py")] == ["__init__.py"]


def test_no_folder_is_a_heap() -> None:
    counts: dict[str, int] = {}
    for path in modules("calibrate", "db", "pages"):
        if path.name != "__init__.py":
            counts[place(path.parent)] = counts.get(place(path.parent), 0) + 1
    assert {folder: n for folder, n in counts.items() if n > MOST_MODULES and folder not in OF_ONE_KIND} == {}


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that the code gives to something, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


@pytest.mark.parametrize("path", modules("calibrate", "db", "pages"), ids=place)
def test_a_name_says_what_it_holds(path: Path) -> None:
    named = [f"{place(path)}:{line} {name}" for name, line in bindings(ast.parse(path.read_text()))]
    assert [name for name in named if name.split()[-1].strip("_").lower() in BANNED] == []


def strings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The text constants of a module, without docstrings, errors that are raised, and lines of a log."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        error = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Error", "BadInput", "Refused"))
        logged = isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("log.", "warnings."))
        if isinstance(node, ast.Raise) or error or logged or isinstance(node, ast.Expr):
            inside = ast.walk(node) if not isinstance(node, ast.Expr) else [node.value]
            left_out |= {id(part) for part in inside}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value, node.lineno


@pytest.mark.parametrize("path", modules("calibrate/stats", "calibrate/workflow", "db"), ids=place)
def test_figures_come_without_sentences(path: Path) -> None:
    if "migrations" in path.parts:
        return
    texts = [
        (text, line)
        for text, line in strings(ast.parse(path.read_text()))
        if not text.startswith(("SELECT ", "(SELECT "))
    ]
    words = re.compile(r"[^\W\d_]+")
    sentences = [f"{line}: {text}" for text, line in texts if sum(map(bool, map(words.search, text.split()))) >= 4]
    assert sentences == []


def numeric_formats(tree: ast.AST) -> Iterator[int]:
    """Lines of f-strings that give a number its look, as {share:.1%} or {n:,}; those of errors and logs left out."""
    texts = {id(node) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)}
    for node in ast.walk(tree):
        raised = isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call)
            and (
                ast.unparse(node.func).endswith(("Error", "BadInput", "Refused"))
                or ast.unparse(node.func).startswith("log.")
            )
        )
        if raised:
            texts -= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and id(node) in texts and node.format_spec is not None:
            spec = ast.unparse(node.format_spec)
            if any(mark in spec for mark in (",", "%", ".1f", ".2f", ".3f", ".0f", ".2g", ".3g", ".4g", "+")):
                yield node.lineno


@pytest.mark.parametrize(
    "path", modules("calibrate/stats", "calibrate/workflow", "calibrate/report", "calibrate/cli", "pages"), ids=place
)
def test_numbers_become_text_in_one_place(path: Path) -> None:
    if path.name == "numbers.py":
        return
    assert list(numeric_formats(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", modules("calibrate/stats"), ids=place)
def test_statistics_know_no_side_of_a_threshold(path: Path) -> None:
    """Scores are oriented where they enter: inside, higher is more suspicious."""
    compared = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Constant) and side.value in ("above", "below")
            for side in (node.left, *node.comparators)
        )
    ]
    assert compared == []


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("calibrate.runtime", {"pandas", "torch", "streamlit", "sqlalchemy", "numpy", "sklearn", "scipy"}),
        ("calibrate.cli", {"pandas", "torch", "streamlit", "sqlalchemy", "numpy", "sklearn", "scipy"}),
        ("calibrate.registry", {"torch", "sentence_transformers", "transformers", "pandas", "sklearn"}),
        ("calibrate.workflow.week.week", {"torch", "sentence_transformers", "transformers", "onnxruntime"}),
    ],
)
def test_light_modules_stay_light(module: str, banned: set[str]) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(loaded.stdout.split()) & banned


def test_help_loads_nothing_of_the_product() -> None:
    code = (
        "import sys, calibrate.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert not loaded & {"numpy", "sqlalchemy", "pandas", "torch", "streamlit", "db"}


def public_functions(package: str) -> Iterator[str]:
    """The dotted names of functions that a package's modules define without a leading underscore."""
    for path in modules(package):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{name}.{node.name}"


@pytest.mark.parametrize("package", ["calibrate/stats", "calibrate/runtime"])
def test_public_functions_say_what_they_take_and_return(package: str) -> None:
    from numpydoc.validate import validate

    wanted = {"GL08", "PR01", "PR02", "RT01"}  # a docstring; parameters, all of them and no others; what is returned
    problems = {
        name: [each for each in validate(name)["errors"] if each[0] in wanted] for name in public_functions(package)
    }
    assert {name: errors for name, errors in problems.items() if errors} == {}
